//! The client: takes the reference that the server printed.

use spandrel::Orb;

spandrel::include_idl!("bank");
use bank::{Account, account::WithdrawError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reference = std::env::args().nth(1).ok_or("usage: client REFERENCE")?;
    let orb = Orb::init(std::env::args())?;
    let account = Account::narrow(&orb.string_to_object(&reference)?)?;
    println!("{} has {} cents", account.owner()?, account.deposit(500)?);
    match account.withdraw(800) {
        Ok(balance) => println!("{balance} cents are left"),
        Err(WithdrawError::Overdrawn(no)) => println!("refused: only {} cents are there", no.balance),
        Err(WithdrawError::System(error)) => return Err(error.into()),
    }
    Ok(())
}
