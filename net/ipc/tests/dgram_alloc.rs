//! Sending and receiving allocate nothing, one by one and in batches.

use std::alloc::System;
use std::io::{IoSlice, IoSliceMut};

use spandrel_ipc::dgram::Batch;
use spandrel_ipc::inet::{Addr, ConnectedDgram, Dgram};
use stats_alloc::{Region, StatsAlloc};

pub(crate) fn sending_and_receiving_allocate_nothing(allocator: &StatsAlloc<System>) {
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    let to = there.local_addr().unwrap();
    let client = ConnectedDgram::connect(&to).unwrap();
    let (mut out, mut into) = (Batch::new(32, 64), Batch::new(32, 64));
    let (mut head, mut tail) = ([0; 8], [0; 56]);

    let region = Region::new(allocator);
    for _ in 0..50 {
        for _ in 0..32 {
            out.push_to(b"one of a batch", &to).unwrap();
        }
        assert_eq!(here.send_batch(&mut out).unwrap(), 32);
        let mut came = 0;
        while came < 32 {
            came += there.recv_batch(&mut into).unwrap();
            assert!(into.iter().all(|one| one.octets() == b"one of a batch" && one.addr().is_ok()));
        }
        client.send(b"alone").unwrap();
        here.send_to_v(&[IoSlice::new(b"in "), IoSlice::new(b"pieces")], &to).unwrap();
        assert_eq!(there.recv_from(&mut tail).unwrap().0.len(), 5);
        let slices = &mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(there.recv_from_v(slices).unwrap().0.len(), 9);
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "{change:?}");
}
