//! Two streams of three modules each, over a wire that changes an octet in some messages.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_stream::{
    Asynchronous, Context, Message, Module, PassThrough, PutError, Service, Side, Stream, Synchronous, Wait,
};

/// Numbers messages on their way down. On their way up, a text tells how many are missing before it.
#[derive(Default)]
struct Sequence {
    next: AtomicU32,
}

impl Service for Sequence {
    fn process(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
        let Some(block) = message.block_mut() else { return context.put_next(message) };
        if context.side() == Side::Writer {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            *block = MessageBlock::from(&[&number.to_be_bytes()[..], &block[..]].concat()[..]);
        } else {
            let Some((number, text)) = block.split_first_chunk() else { return Err(PutError::refused(message)) };
            let number = u32::from_be_bytes(*number);
            let missing = number.wrapping_sub(self.next.swap(number.wrapping_add(1), Ordering::Relaxed));
            let prefix = if missing > 0 { format!("({missing} missing) ") } else { String::new() };
            *block = MessageBlock::from(&[prefix.as_bytes(), text].concat()[..]);
        }
        context.put_next(message)
    }
}

/// Adds a sum to messages on their way down, and drops those that come up with another one.
struct Checksum;

fn sum(octets: &[u8]) -> u8 {
    octets.iter().fold(0, |sum, octet| sum.wrapping_add(*octet))
}

impl Service for Checksum {
    fn process(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
        let Some(block) = message.block_mut() else { return context.put_next(message) };
        if context.side() == Side::Writer {
            *block = MessageBlock::from(&[&block[..], &[sum(block)]].concat()[..]);
        } else {
            match block.split_last() {
                Some((last, octets)) if *last == sum(octets) => *block = MessageBlock::from(octets),
                _ => return Ok(()), // dropped
            }
        }
        context.put_next(message)
    }
}

/// Changes the last letter of every third message on its way down.
#[derive(Default)]
struct Noise {
    messages: AtomicU32,
}

impl Service for Noise {
    fn process(&self, context: &Context<'_>, mut message: Message) -> Result<(), PutError> {
        if self.messages.fetch_add(1, Ordering::Relaxed) % 3 == 2
            && let Some(block) = message.block_mut()
        {
            let mut octets = block.to_vec();
            octets.last_mut().into_iter().for_each(|octet| *octet ^= 1);
            *block = MessageBlock::from(&octets[..]);
        }
        context.put_next(message)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (sender, receiver) = (Stream::new("sender"), Stream::new("receiver"));
    // The last module that is pushed is the highest.
    sender.push(Module::writer("noise", Synchronous(Noise::default())))?;
    sender.push(Module::writer("checksum", Synchronous(Checksum)))?;
    sender.push(Module::writer("sequence", Synchronous(Sequence::default())))?;
    // The receiver checks in a thread of its own.
    receiver.push(Module::new("checksum", Asynchronous::new(Checksum), PassThrough))?;
    receiver.push(Module::reader("sequence", Synchronous(Sequence::default())))?;
    sender.link(&receiver)?;

    for text in ["one", "two", "three", "four", "five"] {
        sender.put(Message::data(text.as_bytes().into()), Wait::Forever)?;
    }
    for _ in 0..4 {
        let message = receiver.get(Wait::For(Duration::from_secs(10)))?;
        println!("{}", String::from_utf8_lossy(message.block().ok_or("no data")?));
    }
    sender.close(Duration::from_secs(1))?;
    receiver.close(Duration::from_secs(1))?;
    Ok(())
}
