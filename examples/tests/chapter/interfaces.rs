//! Interfaces, from both sides.

use std::sync::Mutex;

use spandrel::{ObjectRef, SystemException, cdr::ByteOrder, types::Context};

use super::idl::bank::account::{History, WithdrawError};
use super::idl::bank::branch::{FirstError, SetFirstError};
use super::idl::bank::*;
use super::idl::{lists, surroundings, texts};
use crate::pair::Pair;

#[derive(Default)]
struct Book {
    cents: Mutex<i64>,
    frozen: Mutex<bool>,
}

impl AccountServant for Book {
    fn owner(&self) -> Result<String, SystemException> {
        Ok("Grace".to_owned())
    }

    fn frozen(&self) -> Result<bool, SystemException> {
        Ok(*self.frozen.lock().expect("no panic"))
    }

    fn set_frozen(&self, value: bool) -> Result<(), SystemException> {
        *self.frozen.lock().expect("no panic") = value;
        Ok(())
    }

    fn withdraw(&self, cents: i64) -> Result<i64, WithdrawError> {
        let mut balance = self.cents.lock().expect("no panic");
        if self.frozen()? {
            return Err(Closed {}.into());
        }
        if cents > *balance {
            return Err(Overdrawn { balance: *balance }.into());
        }
        *balance -= cents;
        Ok(*balance)
    }

    fn statement(&self, from: &str, pages: &mut i32) -> Result<History, SystemException> {
        *pages = from.len() as i32;
        Ok(vec![5, -3])
    }

    fn note(&self, _text: &str) -> Result<(), SystemException> {
        Ok(())
    }
}

impl SavingsServant for Book {
    fn rate(&self) -> Result<f64, SystemException> {
        Ok(0.5)
    }
}

#[test]
fn an_operation_is_a_method_on_both_sides() {
    let pair = Pair::new(ByteOrder::Little);
    let account: Account = pair.serve(AccountSkeleton::new(Book { cents: Mutex::new(100), ..Book::default() }));

    assert_eq!(account.owner(), Ok("Grace".to_owned()));
    assert_eq!(account.withdraw(30), Ok(70));
    match account.withdraw(80) {
        Err(WithdrawError::Overdrawn(Overdrawn { balance })) => assert_eq!(balance, 70),
        other => panic!("{other:?}"),
    }
    account.set_frozen(true).expect("an answer");
    assert_eq!(account.withdraw(1), Err(WithdrawError::Closed(Closed {})));

    let mut pages = 0;
    let history = account.statement("May", &mut pages).expect("an answer");
    assert_eq!((history, pages), (vec![5, -3], 3));
    account.note("not waited for").expect("sent");
}

#[test]
fn references_convert_upwards_and_are_narrowed_downwards() {
    let pair = Pair::new(ByteOrder::Little);
    let savings: Savings = pair.serve(SavingsSkeleton::new(Book::default()));

    let account = Account::from(savings.clone());
    let object = ObjectRef::from(account.clone());
    assert_eq!(Savings::narrow(&object).expect("it is one").rate(), Ok(0.5));
    assert!(Branch::narrow(&object).is_err());
}

struct Street(Mutex<Option<Account>>);

impl BranchServant for Street {
    fn first(&self) -> Result<Option<Account>, FirstError> {
        match &*self.0.lock().expect("no panic") {
            Some(first) => Ok(Some(first.clone())),
            None => Err(Closed {}.into()),
        }
    }

    fn set_first(&self, value: Option<&Account>) -> Result<(), SetFirstError> {
        let value = value.ok_or(Overdrawn { balance: 0 })?;
        *self.0.lock().expect("no panic") = Some(value.clone());
        Ok(())
    }

    fn find(&self, owner: &str) -> Result<Option<Account>, SystemException> {
        let first = self.0.lock().expect("no panic").clone();
        Ok(first.filter(|_| owner == "Grace"))
    }

    fn is_ours(&self, anything: Option<&ObjectRef>) -> Result<bool, SystemException> {
        anything.map_or(Ok(false), |object| object.is_a("IDL:Bank/Account:1.0"))
    }
}

#[test]
fn nil_is_none() {
    let pair = Pair::new(ByteOrder::Little);
    let account: Account = pair.serve(AccountSkeleton::new(Book::default()));
    let branch: Branch = pair.serve(BranchSkeleton::new(Street(Mutex::default())));

    assert_eq!(branch.first(), Err(FirstError::Closed(Closed {})));
    assert_eq!(branch.set_first(None), Err(SetFirstError::Overdrawn(Overdrawn { balance: 0 })));
    branch.set_first(Some(&account)).expect("an answer");
    assert_eq!(branch.find("Grace"), Ok(Some(account.clone())));
    assert_eq!(branch.find("Ada"), Ok(None));
    assert_eq!(branch.is_ours(Some(account.as_object())), Ok(true));
}

struct Sorter;

impl lists::DeskServant for Sorter {
    fn sorted(
        &self,
        numbers: &[i32],
        names: &lists::Names,
        matrix: &lists::Matrix,
    ) -> Result<lists::Numbers, SystemException> {
        let mut sorted = numbers.to_vec();
        sorted.extend([names.len() as i32, matrix[1][2] as i32]);
        sorted.sort_unstable();
        Ok(sorted)
    }
}

impl texts::DeskServant for Sorter {
    fn shout(
        &self,
        plain: &str,
        wide: &str,
        title: &mut texts::Title,
    ) -> Result<spandrel::types::WString, SystemException> {
        *title = texts::Title::try_from("Dr").expect("short");
        Ok(format!("{plain} {wide}").to_uppercase().into())
    }
}

#[test]
fn parameters_are_borrowed_and_results_owned() {
    let pair = Pair::new(ByteOrder::Little);
    let lists: lists::Desk = pair.serve(lists::DeskSkeleton::new(Sorter));
    let texts: texts::Desk = pair.serve(texts::DeskSkeleton::new(Sorter));

    let sorted = lists.sorted(&[3, 9], &lists::Names::default(), &[[0.0; 3], [0.0, 0.0, 7.0]]);
    assert_eq!(sorted, Ok(vec![0, 3, 7, 9]));
    let mut title = texts::Title::default();
    let shouted = texts.shout("hello", "žluťoučký", &mut title).expect("an answer");
    assert_eq!((&*shouted, &*title), ("HELLO ŽLUŤOUČKÝ", "Dr"));
}

struct Greeter;

impl surroundings::DeskServant for Greeter {
    fn greeting(&self, name: &str, context: &Context) -> Result<String, SystemException> {
        let word = if context.get("locale") == Some("de") { "Hallo" } else { "Hello" };
        Ok(format!("{word} {name}, known as {:?}", context.iter().collect::<Vec<_>>()))
    }
}

#[test]
fn a_context_clause_is_one_more_parameter() {
    let pair = Pair::new(ByteOrder::Little);
    let desk: surroundings::Desk = pair.serve(surroundings::DeskSkeleton::new(Greeter));

    let mut context = Context::new();
    context.set("user.name", "grace").set("locale", "de").set("secret", "not sent");
    let greeting = desk.greeting("Grace", &context).expect("an answer");
    assert_eq!(greeting, r#"Hallo Grace, known as [("locale", "de"), ("user.name", "grace")]"#);
}
