#version 450
#extension GL_GOOGLE_include_directive : enable
#define MEAN false
#define AXIS RmsNorm_axis
#define EPS RmsNorm_eps
#include "norm.glsl"
