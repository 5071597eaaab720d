//! Panics of the database over the contents of a damaged file, as errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread becomes an error, which is printed in its place.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Opens or verifies a database. Some damage makes `redb` panic; this is the error `Corrupted` here.
///
/// # Errors
/// Those of the work, and a panic.
pub fn catch_damage<T, E: From<redb::Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                print(info);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    outcome.unwrap_or_else(|panic| Err(redb::Error::Corrupted(text(&*panic)).into()))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let line = text.and_then(|text| text.lines().next()).unwrap_or("a part cannot be read");
    format!("the file is damaged ({line})")
}
