# Bootstrap of the agent on a host: describes the host, receives the program if it is missing, and execs it. Lines on
# standard output are for the controller. The script is parsed completely before it runs, so that data which follows it on
# standard input is not taken for commands.
# shellcheck shell=sh disable=SC2046,SC2086,SC2154 # the controller prepends sha256=… of the program
main() {
    LC_ALL=C
    export LC_ALL
    printf 'weighbridge-host 1\n'
    say architecture "$(uname -m)"
    say kernel "$(uname -r)"
    say user "$(id -un)"
    uid=$(id -u)
    sudo=
    if [ "$uid" = 0 ]; then
        say rights root
    elif text=$(sudo -n true 2>&1); then
        sudo='sudo -n'
        say rights sudo
    else
        say rights none "$(printf '%s' "$text" | tail -n 1)"
    fi
    say machine "$(machine)"
    # Relative paths are ignored, as the XDG Base Directory Specification demands.
    case ${XDG_CACHE_HOME-} in
    /*) cache=$XDG_CACHE_HOME ;;
    *) cache=$HOME/.cache ;;
    esac
    folder=$cache/weighbridge/agent/$sha256
    program=$folder/weighbridge
    say folder "$folder"
    read -r reply && [ "$reply" = go ] || exit 0
    create=
    require_trusted "$folder"
    is_it "$program" || store
    # Record the time of use, because many filesystems do not record reads.
    touch -c "$program" 2>/dev/null
    # After the last change of it by this script. Without the note, or without `stat`, the next start computes the hash.
    (umask 077; state "$program" >"$folder/checked") 2>/dev/null
    say start
    exec $sudo "$program" agent
}

say() { printf '%s\n' "$*"; }

# Prints what two names of one machine have in common: the boot, and the folder in which runs announce themselves, as the
# agent chooses it. Hosts in namespaces of one kernel are told apart by their folders. Nothing if it is not known.
machine() {
    locks=${TMPDIR:-/tmp}
    for shared in /dev/shm /tmp /run/lock; do
        case $(stat -Lc %a "$shared" 2>/dev/null) in 1777) locks=$shared ;; esac
    done
    # sudo does not pass it on.
    [ -n "$sudo" ] || locks=${WEIGHBRIDGE_LOCKS:-$locks}
    locks=$(stat -Lc %d:%i "$locks" 2>/dev/null) && boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) &&
        say "$boot $locks"
}

# Requires that only root and this user can replace the program in a folder. Then nobody can between its check and its
# start, and what is started, perhaps as root, is what was checked.
require_trusted() {
    objection=$(object_to "$1" '')
    [ -z "$objection" ] || { say "$objection"; exit 1; }
}

# Prints the line for the controller if another user could replace what is in the folder $1. The levels are checked from
# the root down: only then does each stay in place while the next one is checked. Missing levels end the check, or are
# created. $2 is what follows after the folder, where that is the target of a link.
object_to() (
    set -f
    level='' rest=${1#/} below=$2
    while :; do
        path=${level:-/}
        set -- $(ls -dn "$path" 2>/dev/null)
        if [ $# = 0 ]; then
            [ -n "$create" ] || exit 0
            error=$(mkdir "$path" 2>&1)
            # Another connection may have created it in between.
            set -- $(ls -dn "$path" 2>/dev/null)
            [ $# -gt 0 ] || { say refused "$error"; exit 0; }
        fi
        if ! is_trusted "$3"; then
            set -- $(ls -ld "$path" 2>/dev/null)
            say untrusted "$path belongs to user $3"
            exit 0
        fi
        case $1 in
        l*)
            objection=$(object_to "$(cd -P "$path" && pwd -P)" "$rest$below")
            [ -z "$objection" ] || { say "$objection"; exit 0; }
            ;;
        # In a sticky folder nobody can replace what belongs to another user, but everybody can add to it.
        d????w???[tT]* | d???????w[tT]*)
            [ -n "$rest$below" ] || { say untrusted "$path is writable by other users ($1)"; exit 0; }
            ;;
        d????w* | d???????w*) say untrusted "$path is writable by other users ($1)" && exit 0 ;;
        d*) ;;
        *) say refused "$path is not a folder" && exit 0 ;;
        esac
        [ -n "$rest" ] || exit 0
        level=$level/${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest='' ;; esac
    done
)

# Whether a user, given by number, can replace anything here anyway: root and this one, who becomes root by sudo.
is_trusted() { [ "$1" = 0 ] || [ "$1" = "$uid" ]; }

# Whether the file is the program, and nobody else can change its content.
is_it() {
    file=$1
    set -- $(ls -dn "$file" 2>/dev/null)
    case ${1-} in
    -????w* | -???????w*) return 1 ;;
    -*) is_trusted "$3" && { is_checked "$file" || [ "$(sha256sum <"$file" | cut -c 1-64)" = "$sha256" ]; } ;;
    *) return 1 ;;
    esac
}

# Whether the file is as it was when its hash was right, for hashing takes longer than everything else here. Every change to
# a file sets its time of change. Who could write the note could also replace the program: the folder is theirs.
is_checked() {
    state=$(state "$1")
    [ -n "$state" ] && [ "$(cat "$folder/checked" 2>/dev/null)" = "$state" ]
}

# Which file it is, and when it was changed last. Nothing where that is not known to a fraction of a second: it could be
# changed again in the same one.
state() {
    stat -Lc %d:%i:%s:%z "$1" 2>/dev/null | grep -F . | grep -Fv .000000000
}

# Receives the program into a temporary file and renames it when it is complete. The files created are private to the
# user; the agent and its children keep the umask of the login shell.
store() {
    mask=$(umask)
    umask 077
    part=$folder/part.$(uname -n).$$
    # This file marks a cache folder created by us, which is removed with the last program in it.
    marker=
    [ -d "$cache" ] || marker=$cache/weighbridge/agent/made-cache
    trap clean EXIT
    trap 'exit 1' HUP INT TERM PIPE
    create=yes
    require_trusted "$folder"
    [ -z "$marker" ] || error=$(touch "$marker" 2>&1) || refuse "$error"
    # Remove temporary files of killed predecessors; the processes of other machines on the same filesystem are unknown.
    for other in "$folder/part.$(uname -n)".*; do
        [ ! -f "$other" ] || kill -0 "${other##*.}" 2>/dev/null || rm -f "$other"
    done
    encoding=plain
    [ "$(printf x | gzip -c 2>/dev/null | gzip -dc 2>/dev/null)" = x ] && encoding=gzip
    say send "$(df -Pk "$folder" | awk 'END { print $4 }')" "$encoding"
    read -r encoding length || exit 1
    case $encoding in
    gzip) error=$({ head -c "$length" | gzip -dc; } 2>&1 >"$part") || refuse "$error" ;;
    *) error=$(head -c "$length" 2>&1 >"$part") || refuse "$error" ;;
    esac
    is_it "$part" || refuse "incomplete transfer"
    error=$(chmod 700 "$part" 2>&1) || refuse "$error"
    # Another connection may have stored it meanwhile, and its agent runs: a program that is replaced counts as deleted, and
    # could not start itself again. A link replaces nothing.
    if { [ ! -e "$program" ] && ln "$part" "$program" 2>/dev/null; } || is_it "$program"; then
        rm -f "$part"
    else
        error=$(mv -f "$part" "$program" 2>&1) || refuse "$error"
    fi
    trap - EXIT HUP INT TERM PIPE
    umask "$mask"
}

clean() {
    rm -f "$part"
    rmdir "$folder" 2>/dev/null && [ -n "$marker" ] && rm -f "$marker"
    rmdir "${folder%/*}" "${folder%/*/*}" ${marker:+"$cache"} 2>/dev/null
}

refuse() {
    say refused "$(printf '%s' "$1" | tail -n 1)"
    exit 1
}

