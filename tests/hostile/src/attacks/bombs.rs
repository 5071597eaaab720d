//! Little that unfolds into much.

use anyhow::Result;
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};

use crate::Victim;
use crate::wire::{finish, newest, request, send};

fn ask(victim: &Victim, operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Result<()> {
    let message = request(newest(), &victim.profile.object_key, operation, arguments);
    let mut stream = victim.connect()?;
    send(&mut stream, &message)?;
    finish(stream).map(drop)
}

/// An encapsulation around what is inside.
fn encapsulated(inside: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2));
    out.u8(ByteOrder::NATIVE.flag());
    inside(&mut out);
    out.to_vec()
}

/// Type codes that nest, refer to themselves, or count more than there is.
pub(super) fn type_codes(victim: &Victim, strength: u32) -> Result<()> {
    const SEQUENCE: u32 = 19;
    const ARRAY: u32 = 20;
    const STRUCT: u32 = 15;
    for depth in [10_usize, 60, 70, 1_000, 5_000] {
        // A sequence of sequences of …
        let mut inner = 3_u32.to_ne_bytes().to_vec();
        for _ in 0..depth {
            let level = encapsulated(|out| {
                out.octets(&[0; 3]);
                out.octets(&inner);
                out.u32(0);
            });
            inner = SEQUENCE.to_ne_bytes().to_vec();
            inner.extend((level.len() as u32).to_ne_bytes());
            inner.extend(&level);
        }
        ask(victim, "anything", |out| out.octets(&inner))?;
    }
    for _ in 0..strength * 20 {
        // An array of four thousand million of an empty struct's worth.
        let empty = encapsulated(|out| {
            out.short_str("IDL:E:1.0").expect("it is short");
            out.short_str("E").expect("it is short");
            out.u32(0);
        });
        ask(victim, "anything", |out| {
            out.u32(ARRAY);
            let level = encapsulated(|out| {
                out.u32(STRUCT);
                out.octet_sequence(&empty).expect("it is short");
                out.u32(u32::MAX);
            });
            out.octet_sequence(&level).expect("it is short");
        })?;
        // One that is itself, and one that lies before the message.
        for distance in [-4_i32, -8, -100_000, 4, i32::MIN] {
            ask(victim, "anything", |out| {
                out.u32(u32::MAX);
                out.i32(distance);
            })?;
        }
        // A struct of more members than octets.
        ask(victim, "anything", |out| {
            out.u32(STRUCT);
            let level = encapsulated(|out| {
                out.short_str("IDL:S:1.0").expect("it is short");
                out.short_str("S").expect("it is short");
                out.u32(0x7fff_ffff);
            });
            out.octet_sequence(&level).expect("it is short");
        })?;
    }
    Ok(())
}

/// Values: anys in anys, lists as long as the message, sequences that say more than they have.
pub(super) fn values(victim: &Victim, strength: u32) -> Result<()> {
    const ANY: u32 = 11;
    for depth in [30, 100, 10_000, 500_000] {
        ask(victim, "anything", |out| {
            (0..depth).for_each(|_| out.u32(ANY));
            out.u32(0);
        })?;
    }
    for _ in 0..strength * 20 {
        for count in [1_u32, 1 << 20, u32::MAX] {
            ask(victim, "echo_texts", |out| out.u32(count))?;
            ask(victim, "echo", |out| out.u32(count))?;
            ask(victim, "wide", |out| out.u32(count))?;
        }
    }
    // A list of values, each in the state of the one before.
    for length in [100, 1_000, 100_000] {
        ask(victim, "list", |out| {
            for number in 0..length {
                out.u32(0x7fff_ff00);
                out.i32(number);
            }
            out.u32(0);
        })?;
        // The same value again and again: each an indirection to the first.
        ask(victim, "list", |out| {
            out.u32(0x7fff_ff00);
            out.i32(1);
            for _ in 0..length {
                out.u32(u32::MAX);
                out.i32(-12);
            }
        })?;
    }
    Ok(())
}

/// Lists of contexts: many, long, or longer than the message.
pub(super) fn contexts(victim: &Victim, strength: u32) -> Result<()> {
    let wire = newest();
    let with = |count: u32, write: &dyn Fn(&mut Encoder<'_>)| -> Result<()> {
        // As a request is, up to its contexts.
        let mut out = Encoder::new(wire);
        out.octets(b"GIOP\x01\x02");
        out.u8(ByteOrder::NATIVE.flag());
        out.octets(&[0; 5]);
        out.u32(1);
        out.octets(&[3, 0, 0, 0]);
        out.i16(0);
        out.octet_sequence(&victim.profile.object_key)?;
        out.short_str("echo")?;
        out.u32(count);
        write(&mut out);
        let mut octets = out.to_vec();
        let size = (octets.len() as u32 - 12).to_ne_bytes();
        octets[8..12].copy_from_slice(&size);
        let mut stream = victim.connect()?;
        send(&mut stream, &octets)?;
        finish(stream).map(drop)
    };
    for _ in 0..strength {
        with(u32::MAX, &|_| {})?;
        with(65_535, &|out| {
            for id in 0..65_535 {
                out.u32(id);
                out.u32(0);
            }
        })?;
        with(1, &|out| {
            out.u32(1);
            out.u32(u32::MAX);
        })?;
        with(100, &|out| {
            for _ in 0..100 {
                out.u32(1);
                out.octet_sequence(&[9; 10_000]).expect("it is short");
            }
        })?;
    }
    Ok(())
}
