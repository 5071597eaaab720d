//! A guarded value cannot be kept beyond the guard.

use spandrel_sync::Mutex;

fn main() {
    let mutex = Mutex::new(vec![1]);
    let first = {
        let guard = mutex.lock();
        &guard[0]
    };
    println!("{first}");
}
