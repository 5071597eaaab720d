//! The options and handles of the datagram types, which are the same for each: macros over types with a field `socket`.

/// Waiting and queues, for any family.
macro_rules! common_options {
    ($type:ty) => {
        /// Waiting and queues.
        impl $type {
            /// Whether transfers that wait fail at once with [`io::ErrorKind::WouldBlock`] instead.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
                self.socket.socket().set_nonblocking(on)
            }

            /// How long one receive call may wait (`SO_RCVTIMEO`); `None` is for ever.
            ///
            /// # Errors
            /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
            pub fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.socket.set_recv_timeout(timeout)
            }

            /// See [`set_recv_timeout`](Self::set_recv_timeout).
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn recv_timeout(&self) -> io::Result<Option<Duration>> {
                self.socket.socket().read_timeout()
            }

            /// How long one send call may wait (`SO_SNDTIMEO`); `None` is for ever.
            ///
            /// # Errors
            /// [`io::ErrorKind::InvalidInput`] for a time of zero; others of the operating system.
            pub fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.socket.set_send_timeout(timeout)
            }

            /// See [`set_send_timeout`](Self::set_send_timeout).
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn send_timeout(&self) -> io::Result<Option<Duration>> {
                self.socket.socket().write_timeout()
            }

            /// Asks for a send queue of this many octets (`SO_SNDBUF`).
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn set_send_queue(&self, octets: usize) -> io::Result<()> {
                self.socket.socket().set_send_buffer_size(octets)
            }

            /// The size of the send queue as the system counts it: Linux tells twice what was asked for.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn send_queue(&self) -> io::Result<usize> {
                self.socket.socket().send_buffer_size()
            }

            /// Asks for a receive queue of this many octets (`SO_RCVBUF`). What comes while it is full is lost (UDP) or waits with its
            /// sender (UNIX-domain sockets).
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn set_recv_queue(&self, octets: usize) -> io::Result<()> {
                self.socket.socket().set_recv_buffer_size(octets)
            }

            /// The size of the receive queue as the system counts it: Linux tells twice what was asked for.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn recv_queue(&self) -> io::Result<usize> {
                self.socket.socket().recv_buffer_size()
            }

            /// Takes the error that the system keeps for this endpoint (`SO_ERROR`), if there is one.
            ///
            /// # Errors
            /// Those of the operating system.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.socket.socket().take_error()
            }
        }

        impl Pollable for $type {
            #[inline]
            fn handle(&self) -> Handle<'_> {
                self.socket.handle()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            #[inline]
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.socket.handle()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $type {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                self.socket.handle()
            }
        }
    };
}

/// Giving the handle away.
macro_rules! given_away {
    ($type:ty) => {
        #[cfg(unix)]
        impl From<$type> for std::os::fd::OwnedFd {
            fn from(endpoint: $type) -> Self {
                endpoint.socket.into_socket().into()
            }
        }

        #[cfg(windows)]
        impl From<$type> for std::os::windows::io::OwnedSocket {
            fn from(endpoint: $type) -> Self {
                endpoint.socket.into_socket().into()
            }
        }
    };
}

/// Taking over a handle made elsewhere: `$take_over` checks a `Socket` and makes the type of it.
macro_rules! taken_over {
    ($type:ty, $take_over:expr) => {
        /// Takes over a socket made elsewhere, such as one inherited from another process, after checking its kind.
        ///
        /// # Errors
        /// [`io::ErrorKind::InvalidInput`] if it is a socket of another kind; it is closed then.
        #[cfg(unix)]
        impl TryFrom<std::os::fd::OwnedFd> for $type {
            type Error = io::Error;
            fn try_from(handle: std::os::fd::OwnedFd) -> io::Result<Self> {
                $take_over(socket2::Socket::from(handle))
            }
        }

        /// Takes over a socket made elsewhere, such as one inherited from another process, after checking its kind.
        ///
        /// # Errors
        /// [`io::ErrorKind::InvalidInput`] if it is a socket of another kind; it is closed then.
        #[cfg(windows)]
        impl TryFrom<std::os::windows::io::OwnedSocket> for $type {
            type Error = io::Error;
            fn try_from(handle: std::os::windows::io::OwnedSocket) -> io::Result<Self> {
                $take_over(socket2::Socket::from(handle))
            }
        }
    };
}

pub(crate) use {common_options, given_away, taken_over};
