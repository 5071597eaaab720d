//! Mutated requests and random octets.

use anyhow::Result;
use fastrand::Rng;
use spandrel_cdr::Wire;

use crate::AttackedServer;
use crate::wire::{ORDERS, VERSIONS, echo, finish, request, send};

/// Valid requests of each kind, as the base of mutations.
fn valid_requests(server: &AttackedServer) -> Vec<Vec<u8>> {
    let key = &server.profile.object_key;
    let mut all = Vec::new();
    for wire in ORDERS.iter().flat_map(|order| VERSIONS.iter().map(|version| Wire::new(*order, *version))) {
        all.push(echo(server, wire, &[7; 300]));
        all.push(request(wire, key, "echo_texts", |out| {
            out.u32(2);
            ["one", "another"].iter().for_each(|text| out.short_str(text).expect("the length fits"));
        }));
        all.push(request(wire, key, "anything", |out| {
            // An any with a sequence of longs.
            [19, 12].iter().for_each(|number| out.u32(*number));
            out.octets(&[u8::from(wire.order == spandrel::cdr::ByteOrder::Little), 0, 0, 0]);
            [3, 0, 2, 5, 6].iter().for_each(|number| out.u32(*number));
        }));
        all.push(request(wire, key, "_is_a", |out| out.short_str("IDL:attacked/Target:1.0").expect("the length fits")));
    }
    all
}

fn mutate(octets: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut Rng) {
    for _ in 0..rng.u32(1..4) {
        let at = rng.usize(..octets.len());
        match rng.u8(..6) {
            0 => octets[at] ^= 1 << rng.u8(..8),
            1 => octets[at] = rng.u8(..),
            2 => octets.truncate(at.max(1)),
            3 => {
                let extreme = [0_u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 3][rng.usize(..6)];
                let at = at & !3;
                if let Some(place) = octets.get_mut(at..at + 4) {
                    place.copy_from_slice(&extreme.to_le_bytes());
                }
            }
            4 => {
                let other = &others[rng.usize(..others.len())];
                let from = rng.usize(..other.len());
                octets.truncate(at);
                octets.extend_from_slice(&other[from..]);
                if octets.is_empty() {
                    octets.push(0);
                }
            }
            _ => octets.extend((0..rng.usize(..40)).map(|_| rng.u8(..))),
        }
    }
}

/// Requests with octets changed, truncated or spliced, several on each connection.
pub(super) fn requests(server: &AttackedServer, strength: u32) -> Result<()> {
    let valid_requests = valid_requests(server);
    let mut rng = Rng::with_seed(20);
    for _ in 0..strength * 100 {
        let mut stream = server.connect()?;
        for _ in 0..rng.u32(1..4) {
            let mut octets = valid_requests[rng.usize(..valid_requests.len())].clone();
            mutate(&mut octets, &valid_requests, &mut rng);
            if !send(&mut stream, &octets)? {
                break;
            }
        }
        finish(stream)?;
    }
    Ok(())
}

/// Random octets, half of them after the GIOP magic.
pub(super) fn random(server: &AttackedServer, strength: u32) -> Result<()> {
    let mut rng = Rng::with_seed(21);
    for round in 0..strength * 50 {
        let mut stream = server.connect()?;
        let mut octets = vec![0; rng.usize(1..5000)];
        rng.fill(&mut octets);
        if round % 2 == 0 && octets.len() >= 4 {
            octets[..4].copy_from_slice(b"GIOP");
        }
        send(&mut stream, &octets)?;
        finish(stream)?;
    }
    Ok(())
}
