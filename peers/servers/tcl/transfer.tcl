#!/usr/bin/env tclsh
# The service of paper 004 (section 4.1, with the greeting of 5.5.3) in Tcl: tclserv of tables 5.1 and 5.2,
# event-driven by Tcl's notifier. TclX handles SIGTERM, which Tcl itself has no command for. Tcl 8.6 has no
# options for TCP_NODELAY and the backlog, which is SOMAXCONN there.

package require Tcl 8.6
package require Tclx

namespace eval transfer {
    variable architectures {event-driven}
    variable options {--host 127.0.0.1 --port 0 --workers 10}
    variable greeting "Hello\n\0" ;# with its final NUL, as in the paper
    variable reply [string repeat A 9999]
    variable pending ;# by channel, the octets of an incomplete request
    array set pending {}

    # The notifier uses select, which takes 1024 descriptors; with a higher one the process would be aborted.
    variable max_connections 1000

    proc accept {channel host port} {
        variable greeting
        variable pending
        variable max_connections
        if {[array size pending] >= $max_connections} {
            return [close $channel]
        }
        # A reply is one buffer: `puts` then makes one system call.
        fconfigure $channel -blocking 0 -translation binary -buffering none -buffersize 10000
        set pending($channel) {}
        fileevent $channel readable [list transfer::handle $channel]
        if {$greeting ne {}} {
            send $channel $greeting
        }
    }

    # Reads a part of a request, and answers a whole one.
    proc handle {channel} {
        variable pending
        variable reply
        if {[catch {read $channel [expr {4 - [string length $pending($channel)]}]} octets]} {
            return [end $channel]
        }
        append pending($channel) $octets
        if {[string length $pending($channel)] < 4} {
            if {[eof $channel]} {
                end $channel
            }
            return
        }
        set request $pending($channel)
        set pending($channel) {}
        if {![regexp {^[0-9]{4}$} $request]} {
            return [end $channel]
        }
        scan $request %d number
        send $channel [string range $reply 0 $number-1]
    }

    # Sends octets; those that the peer does not accept at once are sent by the notifier.
    proc send {channel octets} {
        if {[catch {puts -nonewline $channel $octets}]} {
            end $channel
        }
    }

    proc end {channel} {
        variable pending
        unset -nocomplain pending($channel)
        catch {close $channel}
    }

    proc refuse {line} {
        puts stderr $line
        exit 2
    }

    proc number {option value min max} {
        if {![regexp {^[0-9]{1,9}$} $value] || [scan $value %d] < $min || [scan $value %d] > $max} {
            refuse "tcl: $option takes a number from $min to $max"
        }
        return [scan $value %d]
    }

    proc end_with_stdin {} {
        gets stdin
        if {[eof stdin]} {
            exit 0
        }
    }

    proc main {words} {
        variable architectures
        variable options
        variable greeting
        set usage {usage: tcl ARCHITECTURE|--list [--port N] [--host ADDRESS] [--workers N]}
        append usage { [--no-greeting] [--until-stdin-closes]}
        if {$words eq {--list}} {
            puts [join $architectures \n]
            exit 0
        }
        set words [lassign $words architecture]
        if {$architecture eq {} || [string match -* $architecture]} {
            refuse $usage
        }
        if {$architecture ni $architectures} {
            refuse "tcl: unknown architecture `$architecture`; there are: [join $architectures]"
        }
        set until_stdin_closes 0
        while {[llength $words] > 0} {
            set words [lassign $words option]
            if {$option eq {--no-greeting}} {
                set greeting {}
            } elseif {$option eq {--until-stdin-closes}} {
                set until_stdin_closes 1
            } elseif {[dict exists $options $option] && [llength $words] > 0} {
                set words [lassign $words value]
                dict set options $option $value
            } else {
                refuse $usage
            }
        }
        set port [number --port [dict get $options --port] 0 65535]
        number --workers [dict get $options --workers] 1 1024
        set host [dict get $options --host]
        signal trap SIGTERM {exit 0}
        if {[catch {socket -server transfer::accept -myaddr $host $port} listener]} {
            puts stderr "tcl: cannot listen on $host:$port: $listener"
            exit 1
        }
        if {$until_stdin_closes} {
            fconfigure stdin -blocking 0
            fileevent stdin readable transfer::end_with_stdin
        }
        puts "listening $host:[lindex [fconfigure $listener -sockname] 2]"
        flush stdout
        vwait forever
    }
}

transfer::main $argv
