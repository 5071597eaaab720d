//! What the settings of the Rust back end change: included files that have their Rust elsewhere, modules around everything, a
//! file for each module, a client without a server, and servants tied together from several objects.

use spandrel::{ByteOrder, SystemException};

use self::house::settings::{
    ClockServant, LampServant, NamedServant, Reading,
    rooms::{RoomDelegate, RoomSkeleton, RoomTie},
};
use self::shared::shared::Place;

/// What `settings.idl` includes, generated once for all who include it.
mod shared {
    spandrel::include_idl!("shared");
}

spandrel::include_idl!("settings");

/// The same interfaces for somebody who only invokes them.
mod client {
    include!(concat!(env!("OUT_DIR"), "/client/settings.rs"));
}

struct Bulb;

impl NamedServant for Bulb {
    fn name(&self) -> Result<String, SystemException> {
        Ok("bulb".to_owned())
    }
}

impl LampServant for Bulb {
    fn is_lit(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

struct Pendulum;

impl NamedServant for Pendulum {
    fn name(&self) -> Result<String, SystemException> {
        Ok("pendulum".to_owned())
    }
}

impl ClockServant for Pendulum {
    fn hour(&self) -> Result<i32, SystemException> {
        Ok(7)
    }
}

struct Walls;

impl RoomDelegate for Walls {
    fn place(&self) -> Result<Place, SystemException> {
        Ok(Place { name: "attic".to_owned(), longitude: 1.5, latitude: -2.5 })
    }

    fn read(&self, nth: i32) -> Result<Reading, SystemException> {
        Ok(Reading { id: 3, value: f64::from(nth) / 2.0 })
    }
}

#[test]
fn a_tie_is_one_servant_made_of_several_objects() {
    let pair = crate::pair::Pair::new(ByteOrder::NATIVE);
    let tied = RoomTie { lamp: Bulb, clock: Pendulum, own: Walls };
    let room: client::house::settings::rooms::Room = pair.serve(RoomSkeleton::new(tied));
    // What both bases share is answered by the first.
    assert_eq!(room.name().unwrap(), "bulb");
    assert!(room.is_lit().unwrap());
    assert_eq!(room.hour().unwrap(), 7);
    assert_eq!(room.place().unwrap().name, "attic");
    assert_eq!(room.read(5).unwrap().value, 2.5);
}
