//! Tests of the codec, and of its agreement with libtirpc.

mod codec;
mod fixed;
mod hostile;
#[cfg(target_os = "linux")]
mod peer;
mod sample;
