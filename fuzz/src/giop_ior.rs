//! Text parsed as object references: no panic; a parsed reference prints to text that parses to an equal one.
use spandrel_cdr::Ior;
use spandrel_giop::component::{Component, ComponentDisplay};
use spandrel_giop::{IiopProfile, ObjectUrl, ior_from_string, ior_to_string};

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match text.parse::<ObjectUrl>() {
        Ok(ObjectUrl::Ior(ior)) => assert_round_trip(&ior),
        Ok(ObjectUrl::Corbaloc(url)) => {
            let printed = url.to_string();
            let parsed = printed.parse::<ObjectUrl>().expect("printed text can be parsed");
            assert_eq!(parsed, ObjectUrl::Corbaloc(url.clone()));
            if let Ok(ior) = url.to_ior() {
                assert_round_trip(&ior);
            }
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
}

fn assert_round_trip(ior: &Ior) {
    assert_eq!(ior_from_string(&ior_to_string(ior)).as_ref(), Ok(ior));
    for tagged in &ior.profiles {
        let Ok(Some(profile)) = IiopProfile::decode(tagged) else { continue };
        let _ = profile.to_string();
        let encoded = profile.encode().expect("a decoded value can be encoded");
        assert_eq!(IiopProfile::decode(&encoded), Ok(Some(profile.clone())));
        for component in &profile.components {
            let _ = ComponentDisplay(component).to_string();
            let Ok(Some(decoded)) = Component::decode(component) else { continue };
            let encoded = decoded.encode().expect("a decoded value can be encoded");
            assert_eq!(Component::decode(&encoded), Ok(Some(decoded)));
        }
    }
}
