#version 450
#extension GL_GOOGLE_include_directive : enable
#extension GL_EXT_control_flow_attributes : enable
#define LEAST false
#define AXIS ArgMax_axis
#define LAST ArgMax_select_last_index
#include "arg.glsl"
