//! Many viewers of one image at a time, and viewers that take no octets.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use spandrel::bulk::bulk::Offer;
use spandrel::bulk::wire::{Greeting, Role, Token};
use spandrel::bulk::{BulkClient, BulkError};
use spandrel_test_support::wait_until;

use crate::support::{Served, grey, receive, region, upload};

#[test]
fn many_viewers_see_one_image_at_the_same_time() {
    const VIEWERS: u32 = 12;
    let served = Served::new();
    let (pixels, file) = grey(500, 400);
    let image = upload(&served.store, &file).unwrap();
    std::thread::scope(|scope| {
        for viewer in 0..VIEWERS {
            let (served, pixels, file) = (&served, &pixels, &file);
            scope.spawn(move || {
                for round in 0..5 {
                    let row = (viewer * 13 + round * 29) % 300;
                    let received = served.pixels(image, 0, region(0, row, 500, 100));
                    assert!(received == pixels[row as usize * 500..][..50_000]);
                    assert!(receive(&served.store.download(image).unwrap()) == *file);
                }
            });
        }
    });
}

/// A bulk connection that shows its token, and takes no octets.
fn silent_viewer(offer: &Offer) -> TcpStream {
    let address = offer.at.iter().find_map(|endpoint| endpoint.strip_prefix("tcp://")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let greeting =
        Greeting { role: Role::Receives, takes_files: false, reuses: false, token: Token(offer.secret), offset: 0 };
    stream.write_all(&greeting.encode()).unwrap();
    stream
}

#[test]
fn a_viewer_that_stops_reading_loses_its_connection_and_others_get_it() {
    let served = Served::with(|options| {
        options.bulk.idle = Duration::from_secs(2);
        options.bulk.connections = 1;
        options.bulk.connections_per_party = 1;
    });
    // More octets than the buffers of a connection take.
    let (_, file) = grey(6_000, 4_000);
    let image = upload(&served.store, &file).unwrap();
    let offer = served.store.download(image).unwrap();
    let mut silent = silent_viewer(&offer);
    wait_until("octets", || {
        let has_octets = silent.peek(&mut [0]).is_ok_and(|count| count == 1);
        if !has_octets {
            // The machine was so busy that the limit came first.
            silent = silent_viewer(&served.store.download(image).unwrap());
        }
        has_octets
    });
    let refused_before = served.service().bulk_statistics().refused_connections;
    let other = BulkClient::default().resumptions(0).calls(false);
    let refused = other.receive(&served.store.download(image).unwrap(), &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, BulkError::Broken { .. } | BulkError::GaveUp { .. }), "{refused:?}");
    assert_eq!(served.service().bulk_statistics().refused_connections, refused_before + 1, "the place is taken");
    // Its connection ends by the limit; then the other viewer gets the whole image.
    wait_until("the end of the silent viewer", || {
        let mut received = Vec::new();
        let outcome = other.receive(&served.store.download(image).unwrap(), &mut received);
        outcome.is_ok() && received == file
    });
    let mut rest = Vec::new();
    let outcome = silent.read_to_end(&mut rest);
    assert!(rest.len() < file.len(), "{outcome:?}");
}
