# Bootstrap of the agent on a host: describes the host, receives the program if it is missing, and execs it. Lines on
# standard output are for the controller. The script is parsed completely before it runs, so that data which follows it on
# standard input is not taken for commands.
# shellcheck shell=sh disable=SC2086,SC2154 # the controller prepends sha256=… of the program
main() {
    LC_ALL=C
    export LC_ALL
    printf 'weighbridge-host 1\n'
    say architecture "$(uname -m)"
    say kernel "$(uname -r)"
    say user "$(id -un)"
    sudo=
    if [ "$(id -u)" = 0 ]; then
        say rights root
    elif text=$(sudo -n true 2>&1); then
        sudo='sudo -n'
        say rights sudo
    else
        say rights none "$(printf '%s' "$text" | tail -n 1)"
    fi
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/weighbridge/agent/$sha256
    program=$folder/weighbridge
    say folder "$folder"
    read -r reply && [ "$reply" = go ] || exit 0
    is_it "$program" || store
    # Record the time of use, because many filesystems do not record reads.
    touch -c "$program" 2>/dev/null
    say start
    exec $sudo "$program" agent
}

say() { printf '%s\n' "$*"; }

is_it() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -c 1-64)" = "$sha256" ]; }

# Receives the program into a temporary file and renames it when it is complete. The files created are private to the
# user; the agent and its children keep the umask of the login shell.
store() {
    mask=$(umask)
    umask 077
    part=$folder/part.$(uname -n).$$
    cache=${folder%/weighbridge/agent/*}
    # This file marks a cache folder created by us, which is removed with the last program in it.
    marker=
    [ -d "$cache" ] || marker=$cache/weighbridge/agent/made-cache
    trap clean EXIT
    trap 'exit 1' HUP INT TERM PIPE
    error=$({ mkdir -p "$folder" && { [ -z "$marker" ] || touch "$marker"; }; } 2>&1) || refuse "$error"
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
    error=$(chmod 700 "$part" 2>&1 && mv -f "$part" "$program" 2>&1) || refuse "$error"
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

