//! Tests of audio and video streams, by sentences of the specification.

mod flow_specs;
