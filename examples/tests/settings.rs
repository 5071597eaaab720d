//! Options of the Rust back end: external Rust for included files, enclosing modules, a file for each module,
//! a client without a server, and ties of several objects.

use spandrel::{SystemException, cdr::ByteOrder};

use self::house::settings::{
    ClockServant, LampServant, NamedServant, Reading,
    rooms::{RoomDelegate, RoomSkeleton, RoomTie},
};
use self::shared::shared::Place;

/// The files included by `settings.idl`, generated once for all users.
mod shared {
    spandrel::include_idl!("shared");
}

spandrel::include_idl!("settings");

/// The same interfaces for a client only.
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
fn a_tie_combines_several_objects_in_one_servant() {
    let pair = crate::pair::Pair::new(ByteOrder::NATIVE);
    let tied = RoomTie { lamp: Bulb, clock: Pendulum, own: Walls };
    let room: client::house::settings::rooms::Room = pair.serve(RoomSkeleton::new(tied));
    // Operations common to both bases are served by the first.
    assert_eq!(room.name().unwrap(), "bulb");
    assert!(room.is_lit().unwrap());
    assert_eq!(room.hour().unwrap(), 7);
    assert_eq!(room.place().unwrap().name, "attic");
    assert_eq!(room.read(5).unwrap().value, 2.5);
}
