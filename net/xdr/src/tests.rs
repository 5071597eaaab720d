//! Tests of the codec, and of its agreement with libtirpc.

mod codec;
mod hostile;
#[cfg(target_os = "linux")]
mod peer;
mod sample;
