//! Endpoints of every family: addresses, streams, datagrams, shared memory, and their limits.

mod addr;
mod compile_fail;
mod connection;
mod dgram;
mod dgram_batch;
mod dgram_groups;
mod dgram_linux;
mod dgram_misuse;
mod dgram_unix;
mod error_codes;
mod exhausted;
mod families;
mod fifo;
mod figure_7;
mod options;
mod passing;
mod shm;
mod shm_faults;
mod signal_driven;
mod spipe;
mod spipe_windows;
mod stream;
mod support;
mod unix;
