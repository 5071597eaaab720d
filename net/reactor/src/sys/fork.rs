//! Forking a process that has one thread, and waiting for the ends of its children.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI8, Ordering};

use rustix::process::Pid;
use spandrel_ipc::Handle;

/// Forks this process: returns the process ID of the child, and none in the child itself.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] while this process has several threads; those of the system.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    require_one_thread()?;
    // SAFETY: this process has one thread, the calling one, so that the child lacks none: its memory is as
    // consistent as that of the parent, and the child may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        number => Ok(Pid::from_raw(number)),
    }
}

/// Becomes ready for input when children have ended. The signal SIGCHLD is blocked meanwhile, so that it interrupts
/// nothing.
#[derive(Debug)]
pub(crate) struct ChildSignal {
    signals: OwnedFd,
    /// SIGCHLD was not blocked before.
    unblocks: bool,
}

impl ChildSignal {
    /// Blocks SIGCHLD.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] while this process has several threads, since another one could take the signal;
    /// those of the system.
    pub(crate) fn new() -> io::Result<Self> {
        require_one_thread()?;
        let mask = child_mask();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both masks are valid for the calls; the former one is initialised when the first call succeeds. The
        // new handle belongs to nothing else.
        unsafe {
            match libc::pthread_sigmask(libc::SIG_BLOCK, &mask, before.as_mut_ptr()) {
                0 => {}
                number => return Err(io::Error::from_raw_os_error(number)),
            }
            let unblocks = libc::sigismember(before.as_ptr(), libc::SIGCHLD) == 0;
            let handle = libc::signalfd(-1, &mask, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
            if handle < 0 {
                let error = io::Error::last_os_error();
                unblock(unblocks);
                return Err(error);
            }
            Ok(Self { signals: OwnedFd::from_raw_fd(handle), unblocks })
        }
    }

    /// Makes it not ready, until a further child ends.
    pub(crate) fn clear(&self) {
        let mut signal = [0; size_of::<libc::signalfd_siginfo>()];
        // The system keeps one signal of this kind at most. It fails where there is none.
        let _ = rustix::io::read(&self.signals, &mut signal);
    }
}

impl AsFd for ChildSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

impl Drop for ChildSignal {
    fn drop(&mut self) {
        unblock(self.unblocks);
    }
}

/// The set of SIGCHLD alone.
fn child_mask() -> libc::sigset_t {
    let mut mask = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set, and the signal exists.
    unsafe {
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigaddset(mask.as_mut_ptr(), libc::SIGCHLD);
        mask.assume_init()
    }
}

/// Unblocks SIGCHLD in the calling thread, if it is to be.
fn unblock(unblocks: bool) {
    if unblocks {
        // SAFETY: a valid set; the former one is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &child_mask(), ptr::null_mut()) };
    }
}

/// The error of a process with several threads.
fn require_one_thread() -> io::Result<()> {
    if !is_single_threaded() && threads()? != 1 {
        let message =
            "cannot fork a process with several threads: locks held by other threads would stay locked in the child";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(())
}

/// Whether the C library has seen no second thread: `__libc_single_threaded` of glibc 2.32 and later, at no system call.
/// False where it does not tell, also after the last other thread has ended.
fn is_single_threaded() -> bool {
    static FLAG: OnceLock<Option<&'static AtomicI8>> = OnceLock::new();
    let flag = FLAG.get_or_init(|| {
        // SAFETY: if the C library has the variable, it is a `char` that exists as long as the process. It is true only
        // while one thread exists, so that no other one writes it meanwhile.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()).cast::<AtomicI8>().as_ref() }
    });
    flag.is_some_and(|flag| flag.load(Ordering::Relaxed) != 0)
}

/// The number of threads of this process: the folder of its threads has a link for each, besides the two of every
/// folder, and so the count costs one system call.
fn threads() -> io::Result<u64> {
    let links = rustix::fs::stat("/proc/self/task")?.st_nlink;
    #[allow(clippy::useless_conversion, reason = "its type depends on the machine")]
    match u64::from(links).checked_sub(2) {
        Some(threads) if threads > 0 => Ok(threads),
        // A /proc that does not count them.
        _ => Ok(std::fs::read_dir("/proc/self/task")?.count() as u64),
    }
}

/// In the child: closes all handles above standard error but `stream` and `keep`, runs `serve`, and ends the process
/// without unwinding. It allocates nothing, so that the pages of the allocator are not copied for the child.
pub(crate) fn end_copy(stream: Handle<'_>, keep: &[Handle<'_>], serve: impl FnOnce()) -> ! {
    let number = |handle: &Handle<'_>| u32::try_from(crate::sys::number(*handle)).expect("a handle is not negative");
    let kept = || keep.iter().chain([&stream]).map(number);
    let mut first = 3;
    loop {
        let next = kept().filter(|kept| *kept >= first).min();
        let last = next.map_or(u32::MAX, |next| next - 1);
        if first <= last {
            // SAFETY: the handles are the child's own; their owners in its memory are never used or dropped,
            // because this function runs `serve`, which uses no handles but those that stay, and does not return.
            // If a listening socket or other connections stayed open in the child, their peers would never
            // see the end.
            unsafe { libc::close_range(first, last, 0) };
        }
        match next {
            Some(next) => first = next + 1,
            None => break,
        }
    }
    // A panic must not unwind into the reactor, whose handles are all closed.
    let _ = catch_unwind(AssertUnwindSafe(serve));
    // SAFETY: ends the process at once; exit handlers are the parent's task.
    unsafe { libc::_exit(0) }
}
