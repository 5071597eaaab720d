//! Texts read as object references: no panic; what is understood prints and reads as the same again.
use spandrel_cdr::Ior;
use spandrel_giop::component::{Component, ComponentDisplay};
use spandrel_giop::{IiopProfile, ObjectUrl, ior_from_string, ior_to_string};

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match text.parse::<ObjectUrl>() {
        Ok(ObjectUrl::Ior(ior)) => reference(&ior),
        Ok(ObjectUrl::Corbaloc(url)) => {
            let printed = url.to_string();
            let again = printed.parse::<ObjectUrl>().expect("what we print can be read");
            assert_eq!(again, ObjectUrl::Corbaloc(url.clone()));
            if let Ok(ior) = url.to_ior() {
                reference(&ior);
            }
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
}

fn reference(ior: &Ior) {
    assert_eq!(ior_from_string(&ior_to_string(ior)).as_ref(), Ok(ior));
    for tagged in &ior.profiles {
        let Ok(Some(profile)) = IiopProfile::decode(tagged) else { continue };
        let _ = profile.to_string();
        let written = profile.encode().expect("what was read can be written");
        assert_eq!(IiopProfile::decode(&written), Ok(Some(profile.clone())));
        for component in &profile.components {
            let _ = ComponentDisplay(component).to_string();
            let Ok(Some(known)) = Component::decode(component) else { continue };
            let written = known.encode().expect("what was read can be written");
            assert_eq!(Component::decode(&written), Ok(Some(known)));
        }
    }
}
