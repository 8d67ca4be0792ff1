#version 450
#extension GL_GOOGLE_include_directive : enable
#define MEAN true
#define AXIS LayerNorm_axis
#define EPS LayerNorm_eps
#include "norm.glsl"
