//! The macro that implements an acceptor over a listener.

/// Gives `$Acceptor`, with a field `listener` of type [`Listener`](super::Listener) or similar, its methods;
/// `$made` converts an accepted socket to a stream and an address.
macro_rules! acceptor {
    ($Acceptor:ident, $Stream:ty, $Addr:ty, $made:expr) => {
        impl $Acceptor {
            /// Waits for a connection and returns it with the peer's address.
            ///
            /// Continues after a signal, and after a connection that its peer reset before it was accepted.
            /// When no descriptors are left (`EMFILE`, `ENFILE`), an incoming connection is accepted with a
            /// spare descriptor, closed at once, and counted ([`shed`](Self::shed)). So it does not wait for
            /// ever, and this acceptor does not spin. When the system is short of memory, this waits a little
            /// and retries.
            ///
            /// # Errors
            /// [`NotConnected`](std::io::ErrorKind::NotConnected) once [`shutdown`](Self::shutdown) was
            /// called; [`WouldBlock`](std::io::ErrorKind::WouldBlock) when it is nonblocking and no
            /// connection is queued. Any other error concerns this call only. A nonblocking acceptor reports
            /// a shortage of memory, or of descriptors when even the spare one is lost: do not call it for
            /// some milliseconds then, since it may stay ready all the while.
            pub fn accept(&self) -> ::std::io::Result<($Stream, $Addr)> {
                let accepted = self.listener.accept()?;
                ($made)(accepted)
            }

            /// Stops accepting: every [`accept`](Self::accept), waiting or future, returns
            /// [`NotConnected`](std::io::ErrorKind::NotConnected). Connections not yet accepted are reset.
            /// Calling it again does nothing.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn shutdown(&self) -> ::std::io::Result<()> {
                self.listener.shutdown()
            }

            /// Whether [`shutdown`](Self::shutdown) was called.
            #[must_use]
            pub fn is_shut_down(&self) -> bool {
                self.listener.is_shut_down()
            }

            /// The number of connections that were closed at once because no descriptors were left.
            #[must_use]
            pub fn shed(&self) -> u64 {
                self.listener.shed()
            }

            /// The address at which it listens, including the parts chosen by the system.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn local_addr(&self) -> ::std::io::Result<$Addr> {
                <$Addr>::from_system(&self.listener.local_addr()?)
            }

            /// Whether `accept` waits for a connection or fails at once with
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock). Accepted streams wait in any case.
            ///
            /// # Errors
            /// Any error of the operating system.
            pub fn set_nonblocking(&self, on: bool) -> ::std::io::Result<()> {
                self.listener.set_nonblocking(on)
            }
        }

        impl $crate::Accept for $Acceptor {
            type Addr = $Addr;
            type Stream = $Stream;

            fn accept(&self) -> ::std::io::Result<($Stream, $Addr)> {
                $Acceptor::accept(self)
            }
            fn set_nonblocking(&self, on: bool) -> ::std::io::Result<()> {
                $Acceptor::set_nonblocking(self, on)
            }
            fn shutdown(&self) -> ::std::io::Result<()> {
                $Acceptor::shutdown(self)
            }
            fn local_addr(&self) -> ::std::io::Result<$Addr> {
                $Acceptor::local_addr(self)
            }
        }

        impl $crate::Pollable for $Acceptor {
            fn handle(&self) -> $crate::Handle<'_> {
                $crate::Pollable::handle(&self.listener)
            }
        }

        #[cfg(unix)]
        impl ::std::os::fd::AsFd for $Acceptor {
            fn as_fd(&self) -> ::std::os::fd::BorrowedFd<'_> {
                $crate::Pollable::handle(self)
            }
        }

        #[cfg(windows)]
        impl ::std::os::windows::io::AsSocket for $Acceptor {
            fn as_socket(&self) -> ::std::os::windows::io::BorrowedSocket<'_> {
                $crate::Pollable::handle(self)
            }
        }
    };
}

pub(crate) use acceptor;
