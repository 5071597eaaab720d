//! The images of an image store in the console.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use spandrel::bulk::{BulkClient, FileSource};
use spandrel::{Endpoint, Orb};
use spandrel_imaging::imaging::{DataElement, Store};
use spandrel_imaging::{ImagingOptions, ImagingService};
use spandrel_test_support::browser::in_browser;

use super::process::{WithConsole, data};

/// A store with one image in the collection `radiology/ct`.
struct Images {
    service: Option<ImagingService>,
    orb: Orb,
    _folder: tempfile::TempDir,
}

impl Images {
    fn start() -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let service = ImagingService::start(&orb, ImagingOptions::new(folder.path())).unwrap();
        let client = Orb::builder().build().unwrap();
        let store: Store = client.string_to_object(&service.store().to_string()).unwrap().narrow().unwrap();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imaging/phantom.tiff");
        let about = vec![DataElement { keyword: "PatientID".into(), value: "<b>4711</b>".into() }].try_into().unwrap();
        let length = fs::metadata(file).unwrap().len();
        let (_, destination) = store.upload("radiology/ct", &about, length).unwrap();
        BulkClient::default().send(&destination, &FileSource::open(file).unwrap()).unwrap();
        client.shutdown().unwrap();
        Self { service: Some(service), orb, _folder: folder }
    }

    fn option(&self) -> String {
        format!("-ORBInitRef ImageStore={}", self.service.as_ref().unwrap().store())
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        self.service.take().unwrap().stop().unwrap();
        self.orb.shutdown().unwrap();
    }
}

#[test]
fn images_are_listed_and_their_tiles_are_drawn() {
    let images = Images::start();
    let (_folder, data) = data();
    let console = WithConsole::start(&data, &["--orb", &images.option()]);
    let (status, answer) = console.api("GET /api/images?collection=radiology", "");
    assert_eq!(status, 200, "{answer}");
    let image = &answer["images"][0];
    assert_eq!(image["zoom"], json!([[600, 500], [300, 250], [150, 125]]));
    assert_eq!(
        (&image["collection"], &image["samples"], &image["bits"]),
        (&json!("radiology/ct"), &json!(1), &json!(8))
    );
    assert_eq!(answer["truncated"], false);
    for (query, expected) in [("images?collection=a//b", 400), ("images/tile?image=1&level=9&across=0&down=0", 404)] {
        let (status, problem) = console.api(&format!("GET /api/{query}"), "");
        assert_eq!(status, expected, "{problem}");
    }

    in_browser(async |page| {
        page.open(&console.login).await;
        page.click("nav a[href='#/images']").await;
        page.set("#image-collection", "radiology").await;
        page.click("form button[type=submit]").await;
        page.wait("document.querySelector('#images tbody')?.textContent.includes('PatientID: <b>4711</b>')").await;
        page.click("#images tbody button").await;
        page.wait("document.querySelector('#image-state').textContent === '150 × 125, level 2'").await;
        // The skull is bright, and what is outside of it black.
        let pixel = |column: u32, row: u32| {
            format!("document.querySelector('canvas').getContext('2d').getImageData({column}, {row}, 1, 1).data[0]")
        };
        page.wait(&format!("{} > 200 && {} === 0", pixel(75, 6), pixel(2, 2))).await;
        page.click("#zoom-in").await;
        page.click("#zoom-in").await;
        page.wait("document.querySelector('#image-state').textContent === '600 × 500, level 0'").await;
        page.wait(&format!("{} > 200 && {} === 0", pixel(300, 24), pixel(8, 8))).await;
        page.picture("images").await;
        // The browser's advice about this test's own reads of pixels.
        let messages = page.messages().await;
        assert!(messages.iter().all(|message| message.contains("willReadFrequently")), "{messages:?}");
    });
}

#[test]
fn a_console_without_an_image_store_says_so_and_the_policy_decides() {
    let images = Images::start();
    let (folder, data) = data();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "bob bob-bob-bob-bob-bob\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = folder.path().join("policy.toml");
    let rule = "[[rule]]\naction = \"allow\"\nidentity = \"token:bob\"\noperation = [\"find\", \"describe\"]\npath = \"radiology\"\n";
    fs::write(&policy, rule).unwrap();
    let words = ["--policy", policy.to_str().unwrap(), "--console-tokens", tokens.to_str().unwrap()];
    let mut without = WithConsole::start(&data, &words);
    without.token = "bob-bob-bob-bob-bob".to_owned();
    let (status, problem) = without.api("GET /api/images?collection=radiology", "");
    assert!(status == 404 && problem.to_string().contains("-ORBInitRef ImageStore=URL"), "{status} {problem}");
    without.kill();
    let option = images.option();
    let mut console = WithConsole::start(&data, &[&words[..], &["--orb", &option]].concat());
    console.token = "bob-bob-bob-bob-bob".to_owned();
    let (status, answer) = console.api("GET /api/images?collection=radiology", "");
    assert!(status == 200 && answer["images"].as_array().unwrap().len() == 1, "{answer}");
    for request in ["images?collection=surgery", "images/tile?image=1&level=0&across=0&down=0"] {
        let (status, problem) = console.api(&format!("GET /api/{request}"), "");
        assert_eq!(status, 403, "{problem}");
    }
}
