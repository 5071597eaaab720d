//! What stays in the process.

use std::sync::{Arc, Mutex};

use spandrel::SystemException;

use super::idl::locals::{Cookie, Hub, Listener};

struct Memory(Mutex<Vec<String>>);

impl Listener for Memory {
    fn told(&self, what: &str) -> Result<(), SystemException> {
        self.0.lock().expect("no panic").push(what.to_owned());
        Ok(())
    }
}

#[derive(Default)]
struct OneRoom(Mutex<Option<Arc<dyn Listener>>>);

impl Hub for OneRoom {
    fn attach(&self, listener: Option<&Arc<dyn Listener>>) -> Result<Cookie, SystemException> {
        *self.0.lock().expect("no panic") = listener.cloned();
        Ok(Arc::new(17_u32)) // a native type is whatever you put into it
    }

    fn detach(&self, which: &Cookie) -> Result<Option<Arc<dyn Listener>>, SystemException> {
        let known = which.downcast_ref::<u32>() == Some(&17);
        Ok(self.0.lock().expect("no panic").take().filter(|_| known))
    }
}

#[test]
fn local_objects_are_shared() {
    let memory = Arc::new(Memory(Mutex::default()));
    let hub: Arc<dyn Hub> = Arc::new(OneRoom::default());
    let listener: Arc<dyn Listener> = memory.clone();
    let cookie = hub.attach(Some(&listener)).expect("a cookie");
    let back = hub.detach(&cookie).expect("an answer").expect("the listener");
    back.told("goodbye").expect("it listens");
    assert_eq!(*memory.0.lock().expect("no panic"), ["goodbye"]);
}
