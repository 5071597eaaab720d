//! Attacks with fragments.

use anyhow::{Result, ensure};
use spandrel_cdr::{Encoder, GiopVersion, Wire};
use spandrel_giop::{Fragments, MessageType};

use crate::AttackedServer;
use crate::wire::{ORDERS, echo, finish, header, send};

/// The header flag for further fragments.
const MORE: u8 = 2;

/// Endless fragments of one request, and first fragments of many requests.
pub(super) fn endless(server: &AttackedServer, strength: u32) -> Result<()> {
    let block = vec![0; 64 << 10];
    for _ in 0..strength.div_ceil(4) {
        let mut stream = server.connect()?;
        let first = header(MessageType::Request, MORE, 8);
        send(&mut stream, &first)?;
        send(&mut stream, &[1, 0, 0, 0, 3, 0, 0, 0])?;
        let mut megabytes = 0;
        // Beyond the message size limit.
        'sending: while megabytes < 128 {
            for _ in 0..16 {
                let mut fragment = header(MessageType::Fragment, MORE, (4 + block.len()) as u32).to_vec();
                fragment.extend([1, 0, 0, 0]);
                if !(send(&mut stream, &fragment)? && send(&mut stream, &block)?) {
                    break 'sending;
                }
            }
            megabytes += 1;
        }
        ensure!(megabytes < 128, "the server accepted {megabytes} MiB of one request");
        finish(stream)?;
        let mut stream = server.connect()?;
        for id in 0..10_000_u32 {
            let mut message = header(MessageType::Request, MORE, 8).to_vec();
            message.extend(id.to_le_bytes());
            message.extend([3, 0, 0, 0]);
            if !send(&mut stream, &message)? {
                break;
            }
        }
        finish(stream)?;
    }
    Ok(())
}

/// A fragmented request that ends anywhere, or continues with other octets.
pub(super) fn truncated(server: &AttackedServer, strength: u32) -> Result<()> {
    for version in [GiopVersion::V1_1, GiopVersion::V1_2] {
        for order in ORDERS {
            let wire = Wire::new(order, version);
            let whole = echo(server, wire, &[5; 200]);
            let mut out = Encoder::new(wire);
            out.octets(&whole);
            let Some(fragments) = Fragments::of(&out, 64) else { continue };
            let octets = fragments.to_vec(&out);
            let step = (40 / strength.max(1) as usize).max(1);
            for at in (1..octets.len()).step_by(step) {
                let mut stream = server.connect()?;
                send(&mut stream, &octets[..at])?;
                match at % 3 {
                    0 => {}
                    1 => drop(send(&mut stream, &whole)?),
                    _ => drop(send(&mut stream, b"GIOP and no valid message after that")?),
                }
                finish(stream)?;
            }
        }
    }
    Ok(())
}
