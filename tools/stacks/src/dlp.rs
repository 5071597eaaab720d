//! The module of the data-link layer.

use spandrel_message::MessageBlock;
use spandrel_stream::{
    Context, Message, MessageKind, OpenContext, PutError, QueueStrategy, Service, ServiceContext, Task, TaskError,
};
use spandrel_sync::Arc;

use crate::device::{Device, Received};
use crate::frame;
use crate::measurement::Run;

/// The message by which the data link tells the transport that time has passed, or that the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// Timers may have expired.
    Timers,
    /// No more frames will come.
    End,
}

/// The reader of the data-link module. Its threads take frames from the device: one in the task-based architecture, a
/// pool of them in the message-based one, each of which escorts its frame through the modules above.
pub(crate) struct DlpReader<D> {
    pub(crate) device: Arc<D>,
    pub(crate) threads: usize,
    /// The processing element of the first thread.
    pub(crate) element: usize,
    pub(crate) run: Arc<Run>,
}

impl<D: Device, Q: QueueStrategy<Queue: Send + Sync>> Task<Q> for DlpReader<D> {
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        context.activate(self.threads)
    }

    fn put(&self, context: &Context<'_, Q>, message: Message) -> Result<(), PutError> {
        context.put_next(message)
    }

    fn svc(&self, context: &mut ServiceContext<'_, Q>) {
        let counted = self.run.thread_begins(self.element + context.thread_index());
        loop {
            let message = match self.device.receive() {
                Received::Frame(mut octets) if frame::packet(&octets).is_some() => {
                    octets.advance(frame::HEADER);
                    Message::data(octets)
                }
                Received::Frame(_) => {
                    self.run.dropped();
                    continue;
                }
                Received::Nothing => Message::new(MessageKind::Protocol).with_control(Tick::Timers),
                Received::End => break,
            };
            if context.put_next(message).is_err() {
                self.run.dropped();
            }
        }
        // The transport may have no use for it.
        _ = context.put_next(Message::new(MessageKind::Protocol).with_control(Tick::End));
        counted.end();
        self.run.device_thread_ended();
    }
}

/// The writer of the data-link module: sends packets by the device.
pub(crate) struct DlpWriter<D> {
    pub(crate) device: Arc<D>,
}

impl<D: Device, Q: QueueStrategy> Service<Q> for DlpWriter<D> {
    fn process(&self, _: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        if let Some(packet) = message.take_block() {
            let mut frame = MessageBlock::from(&frame::header());
            frame.append(packet);
            self.device.send(&frame);
        }
        Ok(())
    }
}
