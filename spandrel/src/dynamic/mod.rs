//! Dynamic invocation, without generated code: values of any type, requests and servants that are built at
//! run time.
//!
//! With the feature `parse` descriptions of interfaces are read from IDL at run time: `describe` and
//! `describe_file`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use spandrel::dynamic::{ArgMode, DescribedCall, DescribedServant, DynamicObject, NvList};
//! use spandrel::dynamic::{InterfaceDescription, OperationDescription, RequestError};
//! use spandrel::types::{Any, TypeCode};
//! use spandrel::{Endpoint, Orb, Poa};
//!
//! let deposit = OperationDescription::new("deposit")
//!     .parameter(ArgMode::In, "cents", TypeCode::LONGLONG)
//!     .returns(TypeCode::LONGLONG);
//! let account = Arc::new(InterfaceDescription::new("IDL:Bank/Account:1.0", "Account").operation(deposit)?);
//!
//! // The server: a function from values to values.
//! let server = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
//! let serve = |_: &DescribedCall<'_>, arguments: &mut NvList| -> Result<Any, RequestError> {
//!     Ok(Any::new(&(arguments.extract::<i64>(0)? + 100))?)
//! };
//! let reference = Poa::root(&server)?.activate(DescribedServant::described(account.clone(), serve))?;
//!
//! // The client: arguments are compared with the description before anything is sent.
//! let object = DynamicObject::new(reference, account);
//! assert_eq!(object.call("deposit", &[Any::new(&5_i64)?])?.result::<i64>()?, 105);
//! assert!(object.call("deposit", &[Any::new("five")?]).is_err());
//! server.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use spandrel_dynamic::*;

#[cfg(feature = "parse")]
mod describe;
#[cfg(feature = "parse")]
pub use describe::{DescribeError, Descriptions, describe, describe_file};
