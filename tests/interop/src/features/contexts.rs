//! Service contexts: one side's interceptor adds them, the other side's reads them.

use std::cell::RefCell;

use spandrel::SystemException;
use spandrel::interception::{
    ClientRequestInfo, ClientRequestInterceptor, IfPresent, Interceptor, Interruption, ServerRequestInfo,
    ServerRequestInterceptor, ServiceContext,
};

/// The ids of the service contexts in requests and in replies.
const REQUEST_CONTEXT: u32 = 0x5350_0101;
const REPLY_CONTEXT: u32 = 0x5350_0102;

thread_local! {
    /// The context data for this thread's next request.
    static TO_SEND: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    /// The context data of the request that this thread executes.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The context data of the last reply to this thread.
    static RETURNED_DATA: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Sets the context data for this thread's next request.
pub(super) fn set_request_data(text: &str) {
    TO_SEND.set(Some(text.as_bytes().to_vec()));
}

/// The context data of the current request.
pub(super) fn request_data() -> String {
    RECEIVED.with_borrow(|data| String::from_utf8_lossy(data).into_owned())
}

/// The context data of the last reply to this thread.
pub(super) fn reply_data() -> Option<String> {
    RETURNED_DATA.take().map(|octets| String::from_utf8_lossy(&octets).into_owned())
}

/// The client's interceptor.
#[derive(Debug)]
pub(super) struct Sender;

impl Interceptor for Sender {}

impl ClientRequestInterceptor for Sender {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        if let Some(data) = TO_SEND.take() {
            info.add_request_service_context(ServiceContext { id: REQUEST_CONTEXT, data }, IfPresent::Fail)?;
        }
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        RETURNED_DATA.set(info.reply_service_context(REPLY_CONTEXT).ok().map(|context| context.data));
        Ok(())
    }
}

/// The server's interceptor.
#[derive(Debug)]
pub(super) struct Receiver;

impl Interceptor for Receiver {}

impl ServerRequestInterceptor for Receiver {
    /// Runs in the thread of the upcall.
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        RECEIVED.set(info.request_service_context(REQUEST_CONTEXT).map(|context| context.data).unwrap_or_default());
        Ok(())
    }

    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        if info.operation() == "heard" {
            info.add_reply_service_context(
                ServiceContext { id: REPLY_CONTEXT, data: b"answered".to_vec() },
                IfPresent::Fail,
            )?;
        }
        Ok(())
    }
}
