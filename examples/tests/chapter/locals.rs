//! Local objects and native types.

use std::sync::{Arc, Mutex};

use spandrel::SystemException;

use super::idl::locals::{Cookie, Hub, Listener};

struct Memory(Mutex<Vec<String>>);

impl Listener for Memory {
    fn received(&self, message: &str) -> Result<(), SystemException> {
        self.0.lock().expect("no panic").push(message.to_owned());
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

    fn detach(&self, registration: &Cookie) -> Result<Option<Arc<dyn Listener>>, SystemException> {
        let is_known = registration.downcast_ref::<u32>() == Some(&17);
        Ok(self.0.lock().expect("no panic").take().filter(|_| is_known))
    }
}

#[test]
fn local_objects_are_shared() {
    let memory = Arc::new(Memory(Mutex::default()));
    let hub: Arc<dyn Hub> = Arc::new(OneRoom::default());
    let listener: Arc<dyn Listener> = memory.clone();
    let cookie = hub.attach(Some(&listener)).expect("a cookie");
    let back = hub.detach(&cookie).expect("an answer").expect("the listener");
    back.received("hello").expect("no error");
    assert_eq!(*memory.0.lock().expect("no panic"), ["hello"]);
}
