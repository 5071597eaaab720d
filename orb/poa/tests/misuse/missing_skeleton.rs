//! The servant is activated without its skeleton.

use spandrel_orb::{ObjectRef, SystemException};
use spandrel_poa::Poa;

trait AccountServant: Send + Sync {
    fn deposit(&self, cents: i64);
}

struct Book;

impl AccountServant for Book {
    fn deposit(&self, _cents: i64) {}
}

fn serve(poa: &Poa) -> Result<ObjectRef, SystemException> {
    poa.activate(Book)
}

fn main() {
    let _ = serve;
}
