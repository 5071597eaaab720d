//! Priorities, mappings, scheduling, the current, mutexes and policies.

use std::time::Duration;

use crate::policies::{
    ClientProtocolPolicy, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
    PrivateConnectionPolicy, ServerProtocolPolicy, ThreadpoolPolicy,
};
use crate::protocols::{Protocol, SharedMemoryProtocolProperties, TransportProperties, UnixDomainProtocolProperties};
use crate::{
    BoxedJob, ContinuousMapping, DirectMapping, LinearMapping, MutexNotFound, NativePriority, Priority,
    PriorityMapping, RtCurrent, RtMutex, RtOrb, Scheduling, SchedulingClass,
};
use proptest::prelude::*;
use spandrel_giop::{SystemExceptionKind, minor};
use spandrel_orb::Policy;
use spandrel_sync::{Arc, thread};

const FIFO: std::ops::RangeInclusive<NativePriority> = 1..=99;

fn priority(number: i16) -> Priority {
    Priority::new(number).unwrap()
}

fn rt_orb(class: SchedulingClass) -> RtOrb<BoxedJob> {
    RtOrb::new(Scheduling::new(class, Arc::new(LinearMapping)))
}

#[test]
fn a_negative_number_is_no_priority() {
    let error = Priority::new(-1).unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::BadParam);
    assert_eq!((Priority::MIN.get(), Priority::MAX.get()), (0, 32_767));
}

#[test]
fn the_linear_mapping_covers_both_ranges() {
    let map = |number| LinearMapping.to_native(priority(number), &FIFO);
    // The numbers of TAO's linear mapping for SCHED_FIFO on Linux.
    assert_eq!([0, 334, 335, 16_384, 32_766, 32_767].map(map), [1, 1, 2, 50, 98, 99].map(Some));
    let back = |number| LinearMapping.to_corba(number, &FIFO);
    assert_eq!([1, 2, 99].map(back), [0, 335, 32_767].map(|number| Some(priority(number))));
    assert_eq!([0, 100].map(back), [None; 2]);
    assert_eq!(LinearMapping.to_corba(5, &(5..=5)), Some(Priority::MIN), "one native priority");
    let empty = std::ops::RangeInclusive::new(5, 4);
    assert_eq!(LinearMapping.to_native(Priority::MIN, &empty), None);
}

#[test]
fn the_other_mappings_refuse_what_has_no_native_priority() {
    let continuous = |number| ContinuousMapping.to_native(priority(number), &FIFO);
    assert_eq!([0, 98, 99].map(continuous), [Some(1), Some(99), None]);
    assert_eq!(ContinuousMapping.to_corba(99, &FIFO), Some(priority(98)));
    assert_eq!(ContinuousMapping.to_corba(100, &FIFO), None);
    let direct = |number| DirectMapping.to_native(priority(number), &FIFO);
    assert_eq!([0, 1, 99, 100].map(direct), [None, Some(1), Some(99), None]);
    assert_eq!(
        [-1, 0, 20].map(|native| DirectMapping.to_corba(native, &(-19..=20))),
        [None, Some(Priority::MIN), Some(priority(20))]
    );
}

proptest! {
    #[test]
    fn mappings_keep_the_order_and_stay_in_range(
        (a, b) in (0..=i16::MAX, 0..=i16::MAX), (start, span) in (-200_i16..200, 0_i16..200)
    ) {
        let native = start..=start + span;
        for mapping in [&LinearMapping as &dyn PriorityMapping, &ContinuousMapping, &DirectMapping] {
            let (low, high) = (priority(a.min(b)), priority(a.max(b)));
            if let (Some(low), Some(high)) = (mapping.to_native(low, &native), mapping.to_native(high, &native)) {
                prop_assert!(low <= high && native.contains(&low) && native.contains(&high));
            }
            for number in native.clone() {
                if let Some(back) = mapping.to_corba(number, &native) {
                    prop_assert_eq!(mapping.to_native(back, &native), Some(number), "{:?}", mapping);
                }
            }
        }
    }
}

#[test]
fn the_current_sets_the_native_priority_or_raises_the_standards_exceptions() {
    thread::spawn(|| {
        let scheduling = Scheduling::new(SchedulingClass::Fifo, Arc::new(ContinuousMapping));
        let (class, current) = (scheduling.class(), RtCurrent::new(scheduling));
        assert_eq!(current.the_priority().unwrap_err().kind(), SystemExceptionKind::Initialize);
        assert_eq!(current.set_the_priority(-1).unwrap_err().kind(), SystemExceptionKind::BadParam);
        if class == SchedulingClass::Fifo {
            current.set_the_priority(6).unwrap();
            #[cfg(target_os = "linux")]
            assert_eq!(spandrel_sync::current_priority().unwrap(), spandrel_sync::Priority::Fifo(7));
            let unmapped = current.set_the_priority(99).unwrap_err();
            assert_eq!(unmapped.kind(), SystemExceptionKind::DataConversion);
            assert_eq!(unmapped.minor(), minor::PRIORITY_MAPPING);
            assert_eq!(unmapped.minor(), 0x4f4d_0002);
            assert_eq!(current.the_priority().unwrap(), priority(6), "unchanged");
        } else {
            println!("not shown: SCHED_FIFO is not permitted here, {class} is used");
        }
        thread::spawn(move || assert!(current.the_priority().is_err(), "of another thread")).join().unwrap();
    })
    .join()
    .unwrap();
}

/// Without CAP_SYS_NICE the class falls to one that needs no rights.
#[cfg(target_os = "linux")]
#[test]
fn without_rights_the_class_is_replaced() {
    // This thread and its children alone: `setpriv` would change the whole program.
    let out = std::process::Command::new("setpriv")
        .args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--reuid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "tests::priorities::the_class_in_force_is_printed", "--nocapture"])
        .output();
    let Ok(out) = out else {
        println!("not shown: no setpriv");
        return;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() && !text.contains("in force") {
        println!("not shown: setpriv could not start this program as another user: {out:?}");
        return;
    }
    assert!(text.contains("in force: native priorities unchanged"), "{out:?}");
    // Each class is replaced with one line, however often the program asks for it.
    for class in ["SCHED_FIFO", "SCHED_RR"] {
        let lines = text.lines().filter(|line| line.contains(&format!("{class} is not permitted here"))).count();
        assert_eq!(lines, 1, "{class}: {text}");
    }
    assert!(text.contains("used instead: native priorities unchanged"), "{text}");
}

/// Runs in the process of the test above, too, where the class is another one.
#[test]
fn the_class_in_force_is_printed() {
    let create = |class| Scheduling::new(class, Arc::new(LinearMapping));
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stdout).finish();
    let scheduling = tracing::subscriber::with_default(log, || {
        let all =
            [SchedulingClass::RoundRobin, SchedulingClass::Fifo, SchedulingClass::RoundRobin, SchedulingClass::Fifo];
        let [.., last] = all.map(create);
        last
    });
    println!("in force: {}", scheduling.class());
    // All priorities are accepted: they order requests alone.
    assert_eq!(scheduling.requested(), SchedulingClass::Fifo);
    RtCurrent::new(scheduling).set_the_priority(30_000).unwrap();
}

#[test]
fn named_mutexes_are_shared_for_as_long_as_someone_has_them() {
    let orb = rt_orb(SchedulingClass::Unchanged);
    assert_eq!(orb.open_named_mutex("valve").unwrap_err(), MutexNotFound);
    let (first, is_new) = orb.create_named_mutex("valve").unwrap();
    assert!(is_new);
    let (second, is_new) = orb.create_named_mutex("valve").unwrap();
    assert!(!is_new && first.is_same(&second) && orb.open_named_mutex("valve").unwrap().is_same(&first));
    let guard = first.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(second.try_lock(Duration::ZERO).is_none());
            assert!(second.try_lock(Duration::from_millis(5)).is_none());
        });
    });
    drop(guard);
    assert!(second.try_lock(Duration::from_secs(60)).is_some());
    drop((first, second));
    assert_eq!(orb.open_named_mutex("valve").unwrap_err(), MutexNotFound);
    assert!(!orb.create_mutex().is_same(&orb.create_mutex()));
}

#[test]
fn unused_names_make_room_and_used_ones_are_bounded() {
    let orb = rt_orb(SchedulingClass::Unchanged);
    for number in 0..3_000 {
        drop(orb.create_named_mutex(&number.to_string()).unwrap());
    }
    let mutexes: Vec<_> = (0..1_024).map(|number| orb.create_named_mutex(&format!("m{number}")).unwrap()).collect();
    let error = orb.create_named_mutex("one more").unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ImpLimit);
    drop(mutexes);
    orb.create_named_mutex("one more").unwrap();
}

#[test]
fn policies_have_the_standards_numbers() {
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(7) };
    let iiop = || vec![Protocol { protocol_type: 0, transport: None }];
    let bands = PriorityBandedConnectionPolicy::new(vec![PriorityBand::new(0, 5).unwrap()]).unwrap();
    let policies: [Policy; 6] = [
        model.into(),
        ThreadpoolPolicy(3).into(),
        ServerProtocolPolicy::new(iiop()).unwrap().into(),
        ClientProtocolPolicy::new(iiop()).unwrap().into(),
        PrivateConnectionPolicy.into(),
        bands.into(),
    ];
    assert_eq!(policies.map(|policy| policy.policy_type()), [40, 41, 42, 43, 44, 45]);
}

#[test]
fn policies_that_contradict_themselves_are_refused() {
    let band = |low, high| PriorityBand::new(low, high).unwrap();
    assert!(PriorityBand::new(5, 4).is_err() && PriorityBand::new(-1, 4).is_err());
    for wrong in [vec![], vec![band(0, 5), band(5, 9)], vec![band(6, 9), band(0, 9)], vec![band(1, 1); 257]] {
        let error = PriorityBandedConnectionPolicy::new(wrong).unwrap_err();
        assert_eq!(error.kind(), SystemExceptionKind::BadParam);
    }
    let policy = PriorityBandedConnectionPolicy::new(vec![band(6, 9), band(0, 3)]).unwrap();
    assert_eq!(policy.band_of(priority(0)), Some(band(0, 3)));
    assert_eq!((policy.band_of(priority(4)), policy.band_of(priority(9))), (None, Some(band(6, 9))));

    let protocol = |protocol_type| Protocol { protocol_type, transport: None };
    for wrong in [vec![], vec![protocol(0), protocol(4), protocol(0)], (0..65).map(protocol).collect()] {
        assert!(ServerProtocolPolicy::new(wrong.clone()).is_err());
        assert!(ClientProtocolPolicy::new(wrong).is_err());
    }
}

#[test]
fn properties_of_protocols_refuse_negative_sizes() {
    let orb = rt_orb(SchedulingClass::Unchanged);
    let tcp = orb.create_tcp_protocol_properties(65_536, 32_768, false, true, false, true).unwrap();
    assert_eq!((tcp.send_buffer_size(), tcp.recv_buffer_size()), (65_536, 32_768));
    assert_eq!((tcp.keep_alive, tcp.dont_route, tcp.no_delay, tcp.enable_network_priority), (false, true, false, true));
    assert!(orb.create_tcp_protocol_properties(-1, 0, true, false, true, false).is_err());
    assert!(UnixDomainProtocolProperties::new(0, -1).is_err());
    let mut unix = UnixDomainProtocolProperties::new(1, 2).unwrap();
    assert!(unix.set_buffer_sizes(8, -8).is_err());
    assert_eq!((unix.send_buffer_size(), unix.recv_buffer_size()), (1, 2), "unchanged");
    assert!(SharedMemoryProtocolProperties::new(-1, "", "").is_err());
    let memory = SharedMemoryProtocolProperties::new(4_096, "file", "lock").unwrap();
    assert_eq!(memory.preallocate_buffer_size(), 4_096);
    let protocols = vec![
        Protocol { protocol_type: 0, transport: Some(TransportProperties::Tcp(tcp)) },
        Protocol { protocol_type: 1, transport: Some(TransportProperties::SharedMemory(memory)) },
    ];
    assert_eq!(ServerProtocolPolicy::new(protocols.clone()).unwrap().protocols(), protocols);
}

#[test]
fn thread_pools_have_numbers_that_are_valid_until_they_are_destroyed() {
    let orb = rt_orb(SchedulingClass::Unchanged);
    let first = orb.create_threadpool(0, 1, 0, Priority::MIN, false, 0, 0).unwrap();
    let second = orb.create_threadpool(256 * 1024, 1, 0, priority(7), true, 5, 100).unwrap();
    assert_ne!(first, second);
    assert_eq!(orb.create_threadpool_policy(second).unwrap(), ThreadpoolPolicy(second));
    orb.destroy_threadpool(second).unwrap();
    assert!(orb.threadpool(second).is_none() && orb.destroy_threadpool(second).is_err());
    assert_eq!(orb.create_threadpool_policy(second).unwrap_err().kind(), SystemExceptionKind::BadParam);
    assert!(orb.threadpool(first).is_some());
}

/// The priority by which the kernel schedules the calling thread, inherited ones included (proc(5): the field 18 of `stat`):
/// from -2 for the lowest real-time one to -100, and from 0 to 39 for ordinary threads.
#[cfg(target_os = "linux")]
fn scheduled_priority() -> i64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(18 - 3).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn the_holder_of_a_mutex_has_the_priority_of_a_waiting_thread_also_when_it_was_demoted() {
    use std::sync::mpsc;

    use spandrel_sync::{NativeThreadId, Priority as ThreadPriority, set_current_priority};
    use spandrel_test_support::wait_until;

    let mutex = RtMutex::new();
    for is_demoted in [false, true] {
        let (send, locked) = mpsc::channel();
        let (begin, begun) = mpsc::channel::<()>();
        let held = mutex.clone();
        let holder = std::thread::spawn(move || {
            if is_demoted && set_current_priority(ThreadPriority::Fifo(3)).is_ok() {
                NativeThreadId::current().unwrap().demote().unwrap();
            }
            let guard = held.lock();
            let before = scheduled_priority();
            send.send(()).unwrap();
            if begun.recv().is_ok() {
                wait_until("the inherited priority", || scheduled_priority() == -1 - 42);
            }
            drop(guard);
            [before, scheduled_priority()]
        });
        locked.recv().unwrap();
        let waiting = mutex.clone();
        let waiter = std::thread::spawn(move || {
            let is_real_time = set_current_priority(ThreadPriority::Fifo(42)).is_ok();
            if is_real_time {
                begin.send(()).unwrap();
            }
            drop(begin);
            drop(waiting.lock());
            is_real_time
        });
        let [before, after] = holder.join().unwrap();
        assert!(before >= 0 && after == before, "an ordinary thread before and after: {before} {after}");
        if !waiter.join().unwrap() {
            return println!("not shown: this user may not set real-time priorities");
        }
    }
}
