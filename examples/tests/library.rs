//! Generated code in a library of its own: an IDL file whose included file is compiled in another crate.

use std::sync::Mutex;

use spandrel::{Orb, Poa, SystemException};
// The library `spandrel_examples` has the code of bank.idl.
use spandrel_examples::bank::{Account, AccountServant, AccountSkeleton, account::WithdrawError};

spandrel::include_idl!("teller");
use branch::{Teller, TellerServant, TellerSkeleton, teller::OpenError};

// ANCHOR: teller
struct Counter {
    poa: Poa,
}

impl TellerServant for Counter {
    fn open(&self, owner: &str) -> Result<Option<Account>, OpenError> {
        let servant = AccountSkeleton::new(Purse { owner: owner.to_owned(), cents: Mutex::new(0) });
        let object = self.poa.activate(servant)?;
        Ok(Some(Account::unchecked_narrow(&object)))
    }
}
// ANCHOR_END: teller

struct Purse {
    owner: String,
    cents: Mutex<i64>,
}

impl AccountServant for Purse {
    fn owner(&self) -> Result<String, SystemException> {
        Ok(self.owner.clone())
    }

    fn deposit(&self, cents: i64) -> Result<i64, SystemException> {
        let mut balance = self.cents.lock().unwrap();
        *balance += cents;
        Ok(*balance)
    }

    fn withdraw(&self, cents: i64) -> Result<i64, WithdrawError> {
        Ok(self.deposit(-cents)?)
    }
}

#[test]
fn types_of_an_included_file_are_those_of_the_library() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::builder().build()?;
    let poa = Poa::root(&server)?;
    let object = poa.activate(TellerSkeleton::new(Counter { poa: poa.clone() }))?;
    let client = Orb::builder().build()?;
    let teller: Teller = client.string_to_object(&object.to_string())?.narrow()?;
    let account: Account = teller.open("Ada")?.expect("an account");
    assert_eq!((account.deposit(5)?, account.owner()?), (5, "Ada".to_owned()));
    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}
