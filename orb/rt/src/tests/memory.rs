//! Memory that `lock_memory` keeps resident.

use spandrel_giop::SystemExceptionKind;
use spandrel_test_support::alone;

use crate::lock_memory;

/// Octets of this process that are locked, in KiB.
fn locked() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmLck:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn locked_memory_includes_the_stacks_of_later_threads() {
    const STACK: usize = 1 << 20;
    alone(|| {
        assert_eq!(locked(), 0);
        if let Err(exception) = lock_memory() {
            let kinds = [SystemExceptionKind::NoPermission, SystemExceptionKind::NoMemory];
            assert!(kinds.contains(&exception.kind()), "{exception}");
            println!("not shown: {exception}");
            return;
        }
        let before = locked();
        assert!(before > 1_000, "{before} KiB");
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(locked).unwrap();
        let with_stack = thread.join().unwrap();
        assert!(with_stack >= before + 1_024, "{with_stack} KiB with a stack of 1,024 KiB, {before} before");
    });
}
