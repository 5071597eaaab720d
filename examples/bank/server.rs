//! The server: an account behind a reference.

use std::sync::Mutex;

use spandrel::{CompletionStatus, Orb, Poa, SystemException};

spandrel::include_idl!("bank");
use bank::{Account, AccountServant, Overdrawn, account::WithdrawError};

struct Savings {
    balance: Mutex<i64>,
}

impl AccountServant for Savings {
    fn owner(&self) -> Result<String, SystemException> {
        Ok("Grace".to_owned())
    }

    fn deposit(&self, cents: i64) -> Result<i64, SystemException> {
        let mut balance = self.balance.lock().unwrap();
        *balance = balance.checked_add(cents).ok_or_else(too_large)?;
        Ok(*balance)
    }

    fn withdraw(&self, cents: i64) -> Result<i64, WithdrawError> {
        let mut balance = self.balance.lock().unwrap();
        if cents > *balance {
            return Err(Overdrawn { balance: *balance }.into());
        }
        *balance = balance.checked_sub(cents).ok_or_else(too_large)?;
        Ok(*balance)
    }
}

/// The exception of an amount with which the balance is no `long long` any more.
fn too_large() -> SystemException {
    SystemException::bad_param(0, CompletionStatus::No)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    spandrel::diagnostics::log::init()?;
    let orb = Orb::init(std::env::args())?;
    let savings = Savings { balance: Mutex::new(0) };
    let account: Account = Poa::root(&orb)?.serve(savings)?;
    println!("{account}");
    Ok(orb.run_until_signal()?)
}
