//! Memory that the system keeps resident.

use spandrel_giop::{CompletionStatus, SystemException};

/// Keeps all memory of the process resident, that of later threads included (`mlockall`): no page fault delays a
/// real-time thread. The stacks of a pool's threads are resident when the pool is created; small ones
/// ([`PoolSettings::stack_octets`](crate::PoolSettings)) take less memory.
///
/// ```no_run
/// spandrel_rt::lock_memory()?; // before pools and ORBs are created
/// # Ok::<(), spandrel_giop::SystemException>(())
/// ```
///
/// # Errors
/// NO_PERMISSION without the rights (`CAP_IPC_LOCK`, or an `RLIMIT_MEMLOCK` that is large enough), NO_MEMORY if the
/// memory does not suffice, NO_RESOURCES on systems other than Linux.
pub fn lock_memory() -> Result<(), SystemException> {
    #[cfg(target_os = "linux")]
    {
        use rustix::{
            io::Errno,
            mm::{MlockAllFlags, mlockall},
        };
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| {
            let exception = match error {
                Errno::PERM => SystemException::no_permission(0, CompletionStatus::No),
                _ => SystemException::no_memory(0, CompletionStatus::No),
            };
            exception
                .with_detail("memory cannot be locked (mlockall): CAP_IPC_LOCK, or a larger RLIMIT_MEMLOCK, permits it")
                .with_source(error)
        })
    }
    #[cfg(not(target_os = "linux"))]
    Err(SystemException::no_resources(0, CompletionStatus::No).with_detail("memory can be locked on Linux alone"))
}
