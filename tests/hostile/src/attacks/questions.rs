//! Messages that are well formed, and out of place.

use anyhow::{Result, ensure};
use fastrand::Rng;
use spandrel_cdr::Encoder;
use spandrel_giop::{MessageType, locate_request};

use crate::Victim;
use crate::wire::{finish, header, newest, request, send};

/// Where a reply in GIOP 1.2 says what it is.
const STATUS_AT: usize = 16;
const NO_EXCEPTION: u8 = 0;

/// Keys with a bit changed, cut, grown, or of nobody: no object answers to any of them.
pub(super) fn keys(victim: &Victim, strength: u32) -> Result<()> {
    let own = &victim.profile.object_key;
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
    let mut stream = victim.connect()?;
    for key in &forged {
        let mut out = Encoder::new(newest());
        locate_request(&mut out, 7, key)?;
        ensure!(send(&mut stream, &out.to_vec())?, "the server hangs up on a question");
        ensure!(send(&mut stream, &request(newest(), key, "echo", |out| out.u32(0)))?, "the server hangs up");
    }
    let said = finish(stream)?;
    let (mut rest, mut replies) = (&said[..], 0);
    while let Some((header, behind)) = rest.split_first_chunk::<12>() {
        let size = u32::from_ne_bytes(header[8..].try_into()?) as usize;
        ensure!(size <= behind.len(), "an answer is cut off");
        if header[7] == 1 {
            replies += 1;
            let status = rest[STATUS_AT..STATUS_AT + 4].iter().fold(0, |all, octet| all | octet);
            ensure!(status != NO_EXCEPTION, "somebody answers to a forged key");
        }
        rest = &behind[size..];
    }
    ensure!(replies == forged.len(), "{replies} answers to {} requests", forged.len());
    Ok(())
}

/// What only servers may say, cancellations of nothing, and a farewell in the middle.
pub(super) fn out_of_place(victim: &Victim, strength: u32) -> Result<()> {
    for _ in 0..strength * 20 {
        for message_type in [MessageType::Reply, MessageType::LocateReply, MessageType::Fragment] {
            let mut stream = victim.connect()?;
            send(&mut stream, &header(message_type, 0, 12))?;
            send(&mut stream, &[1; 12])?;
            finish(stream)?;
        }
        for message_type in [MessageType::CloseConnection, MessageType::MessageError] {
            let mut stream = victim.connect()?;
            send(&mut stream, &request(newest(), &victim.profile.object_key, "echo", |out| out.u32(0)))?;
            send(&mut stream, &header(message_type, 0, 0))?;
            finish(stream)?;
        }
        let mut stream = victim.connect()?;
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
