//! Two IDL files, one of which includes the other, and a module that both of them open.

use spandrel::cdr::ByteOrder;

use super::idl::mapping::{AnnexServant, AnnexSkeleton, Colour, RefusedError, annex::MoveError};
use super::idl::offices::{Desk, Office, OfficeServant, office::DesksError};
use super::idl::shared::{Place, Refused};
use crate::pair::Pair;

struct Attic;

impl OfficeServant for Attic {
    fn desks(&self, near: &Place) -> Result<Vec<Desk>, DesksError> {
        Ok(vec![Desk { place: near.clone(), paint: Colour::default() }])
    }
}

impl AnnexServant for Attic {
    fn r#move(&self, desk: &Desk) -> Result<(), MoveError> {
        Err(Refused { why: desk.place.name.clone() }.into())
    }
}

#[test]
fn files_compiled_together_share_definitions() {
    let pair = Pair::new(ByteOrder::NATIVE);
    let annex: super::idl::mapping::Annex = pair.serve(AnnexSkeleton::new(Attic));
    let office = Office::from(annex.clone());
    let place = Place { name: "roof".to_owned(), ..Place::default() };
    let desks = office.desks(&place).expect("an answer");
    assert_eq!(desks[0].place, place);
    let refused: Result<(), RefusedError> = annex.r#move(&desks[0]);
    assert_eq!(refused, Err(Refused { why: "roof".to_owned() }.into()));
}
