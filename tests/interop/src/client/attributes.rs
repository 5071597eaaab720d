//! Attributes, and one-way calls observed by their effects.

use crate::idl::*;
use crate::suite::{SEEDS, Suite, check, equal, not_nil, poll_until};
use crate::values::value;

pub(super) fn run(suite: &mut Suite<'_>, target: &Attributes, objects: &Objects) {
    suite.seeded("attributes/read-write", |seed| {
        let before = target.writes()?;
        target.set_number(value(seed, 1))?;
        target.set_title(&value::<String>(seed, 2))?;
        target.set_hue(value(seed, 3))?;
        target.set_place(&value(seed, 4))?;
        target.set_entry(&value(seed, 5))?;
        target.set_numbers(&value::<DoubleSeq>(seed, 6))?;
        target.set_block(&value(seed, 7))?;
        equal("writes", target.writes()?, before + 7)?;
        check("number", &target.number()?, seed, 1)?;
        check("title", &target.title()?, seed, 2)?;
        check("hue", &target.hue()?, seed, 3)?;
        check("place", &target.place()?, seed, 4)?;
        check("entry", &target.entry()?, seed, 5)?;
        check("numbers", &target.numbers()?, seed, 6)?;
        check("block", &target.block()?, seed, 7)
    });
    suite.case("attributes/object", || {
        target.set_peer(objects.make(8)?.as_ref())?;
        equal("id", not_nil(target.peer()?)?.id()?, 8)?;
        target.set_peer(None)?;
        equal("is nil", target.peer()?.is_none(), true)
    });
    suite.case("attributes/read-only", || {
        equal("third, tenth", (target.third()?, target.tenth()?), (DOUBLE_THIRD, 0.1))
    });
}

/// One-way calls have no reply: other operations read their effect.
pub(super) fn oneways(suite: &mut Suite<'_>, target: &Oneways) {
    suite.case("oneways/ping", || {
        let before = target.pings()?;
        (0..100).try_for_each(|_| target.ping())?;
        poll_until("100 pings", || Ok(target.pings()? == before + 100))
    });
    suite.case("oneways/note", || {
        let before = target.notes()?;
        for seed in 0..SEEDS {
            target.note(seed, &value::<String>(seed, 1), &value(seed, 2), &value::<DoubleSeq>(seed, 3))?;
        }
        poll_until("all notes", || {
            equal("complaint", target.complaint()?, "")?;
            Ok(target.notes()? == before + SEEDS)
        })
    });
}
