#version 450
#extension GL_GOOGLE_include_directive : enable
#extension GL_EXT_control_flow_attributes : enable
#define LEAST true
#define AXIS ArgMin_axis
#define LAST ArgMin_select_last_index
#include "arg.glsl"
