//! Well-formed messages that a server does not expect.

use anyhow::{Result, ensure};
use fastrand::Rng;
use spandrel_cdr::Encoder;
use spandrel_giop::{MessageType, locate_request};

use crate::AttackedServer;
use crate::wire::{finish, header, native_wire, request, send};

/// The offset of the status in a GIOP 1.2 reply.
const STATUS_AT: usize = 16;
const NO_EXCEPTION: u8 = 0;

/// Object keys with a flipped bit, truncated, extended, or random: no object is found for any of them.
pub(super) fn forged_keys(server: &AttackedServer, strength: u32) -> Result<()> {
    let own = &server.profile.object_key;
    let mut rng = Rng::with_seed(22);
    let mut forged: Vec<Vec<u8>> = (0..own.len() * 8)
        .map(|bit| {
            let mut key = own.clone();
            key[bit / 8] ^= 1 << (bit % 8);
            key
        })
        .collect();
    forged.extend((0..own.len()).map(|len| own[..len].to_vec()));
    forged.extend((0..strength * 20).map(|_| (0..rng.usize(..200)).map(|_| rng.u8(..)).collect()));
    forged.push(vec![0; 1 << 20]);
    let mut stream = server.connect()?;
    for key in &forged {
        let mut out = Encoder::new(native_wire());
        locate_request(&mut out, 7, key)?;
        ensure!(send(&mut stream, &out.to_vec())?, "the server closed the connection on a LocateRequest");
        ensure!(
            send(&mut stream, &request(native_wire(), key, "echo", |out| out.u32(0)))?,
            "the server closed the connection"
        );
    }
    let received = finish(stream)?;
    let (mut rest, mut replies) = (&received[..], 0);
    while let Some((header, behind)) = rest.split_first_chunk::<12>() {
        let size = u32::from_ne_bytes(header[8..].try_into()?) as usize;
        ensure!(size <= behind.len(), "a reply is truncated");
        if header[7] == 1 {
            replies += 1;
            let status = rest[STATUS_AT..STATUS_AT + 4].iter().fold(0, |all, octet| all | octet);
            ensure!(status != NO_EXCEPTION, "an object was found for a forged key");
        }
        rest = &behind[size..];
    }
    ensure!(replies == forged.len(), "{replies} replies to {} requests", forged.len());
    Ok(())
}

/// Messages that only servers may send, cancellations of unknown requests, and CloseConnection after a request.
pub(super) fn out_of_place(server: &AttackedServer, strength: u32) -> Result<()> {
    for _ in 0..strength * 20 {
        for message_type in [MessageType::Reply, MessageType::LocateReply, MessageType::Fragment] {
            let mut stream = server.connect()?;
            send(&mut stream, &header(message_type, 0, 12))?;
            send(&mut stream, &[1; 12])?;
            finish(stream)?;
        }
        for message_type in [MessageType::CloseConnection, MessageType::MessageError] {
            let mut stream = server.connect()?;
            send(&mut stream, &request(native_wire(), &server.profile.object_key, "echo", |out| out.u32(0)))?;
            send(&mut stream, &header(message_type, 0, 0))?;
            finish(stream)?;
        }
        let mut stream = server.connect()?;
        for id in 0..1_000_u32 {
            let mut message = header(MessageType::CancelRequest, 0, 4).to_vec();
            message.extend(id.to_le_bytes());
            if !send(&mut stream, &message)? {
                break;
            }
        }
        finish(stream)?;
    }
    Ok(())
}
