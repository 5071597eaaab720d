//! A component with the null strategy cannot be shared between threads either.

use spandrel_sync::{Guarded, Lock, Mutex, NullMutex, thread};

struct Table<L: Lock = Mutex> {
    entries: Guarded<Vec<u32>, L>,
}

fn main() {
    let table = Table::<NullMutex> { entries: Guarded::default() };
    thread::scope(|scope| {
        scope.spawn(|| table.entries.lock().push(1));
    });
}
