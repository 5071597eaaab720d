//! Service contexts: what one side's interceptor adds, the other's sees.

use std::cell::RefCell;

use spandrel::SystemException;
use spandrel::interception::{
    ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, ServerRequestInfo,
    ServerRequestInterceptor, ServiceContext,
};

/// The numbers of our contexts in requests and in replies.
const ASKED: u32 = 0x5350_0101;
const ANSWERED: u32 = 0x5350_0102;

thread_local! {
    /// What this thread's next request says.
    static SAID: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    /// What the request said that this thread carries out.
    static HEARD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// What the last reply to this thread said.
    static RETURNED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Has the next request of this thread say this.
pub(super) fn say(text: &str) {
    SAID.set(Some(text.as_bytes().to_vec()));
}

/// What the request said that is being carried out.
pub(super) fn heard() -> String {
    HEARD.with_borrow(|heard| String::from_utf8_lossy(heard).into_owned())
}

/// What the last reply to this thread said.
pub(super) fn returned() -> Option<String> {
    RETURNED.take().map(|octets| String::from_utf8_lossy(&octets).into_owned())
}

/// The client's.
#[derive(Debug)]
pub(super) struct Sender;

impl Interceptor for Sender {}

impl ClientRequestInterceptor for Sender {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        if let Some(data) = SAID.take() {
            info.add_request_service_context(ServiceContext { id: ASKED, data }, false)?;
        }
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        RETURNED.set(info.reply_service_context(ANSWERED).ok().map(|context| context.data));
        Ok(())
    }
}

/// The server's.
#[derive(Debug)]
pub(super) struct Receiver;

impl Interceptor for Receiver {}

impl ServerRequestInterceptor for Receiver {
    /// In the thread of the upcall.
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        HEARD.set(info.request_service_context(ASKED).map(|context| context.data).unwrap_or_default());
        Ok(())
    }

    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        if info.operation() == "heard" {
            info.add_reply_service_context(ServiceContext { id: ANSWERED, data: b"answered".to_vec() }, false)?;
        }
        Ok(())
    }
}
