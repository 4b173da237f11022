# What a host runs before the agent: says what it is, takes the program if it is not there, and becomes it. Lines on
# standard output are for the controller. Read whole before anything is done, so that nothing else is taken for it.
# shellcheck shell=sh disable=SC2086,SC2154 # before it stands sha256=… of the program
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
    read -r word && [ "$word" = go ] || exit 0
    is_it "$program" || store
    # When it was last used: what reads a file leaves no trace on many filesystems.
    touch -c "$program" 2>/dev/null
    say start
    exec $sudo "$program" agent
}

say() { printf '%s\n' "$*"; }

is_it() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -c 1-64)" = "$sha256" ]; }

# Takes the program beside its place and moves it there when it is whole. What is made is ours alone; the agent, and what
# it runs, has the umask that the shell came with.
store() {
    mask=$(umask)
    umask 077
    part=$folder/part.$(uname -n).$$
    cache=${folder%/weighbridge/agent/*}
    # A cache that we made goes with the last program in it: this file says that we did.
    made=
    [ -d "$cache" ] || made=$cache/weighbridge/agent/made-cache
    trap clean EXIT
    trap 'exit 1' HUP INT TERM PIPE
    error=$({ mkdir -p "$folder" && { [ -z "$made" ] || touch "$made"; }; } 2>&1) || refuse "$error"
    # What killed predecessors left; those of other machines on the same filesystem are not known.
    for other in "$folder/part.$(uname -n)".*; do
        [ ! -f "$other" ] || kill -0 "${other##*.}" 2>/dev/null || rm -f "$other"
    done
    form=plain
    [ "$(printf x | gzip -c 2>/dev/null | gzip -dc 2>/dev/null)" = x ] && form=gzip
    say send "$(df -Pk "$folder" | awk 'END { print $4 }')" "$form"
    read -r form length || exit 1
    case $form in
    gzip) error=$({ head -c "$length" | gzip -dc; } 2>&1 >"$part") || refuse "$error" ;;
    *) error=$(head -c "$length" 2>&1 >"$part") || refuse "$error" ;;
    esac
    is_it "$part" || refuse "not all of it came"
    error=$(chmod 700 "$part" 2>&1 && mv -f "$part" "$program" 2>&1) || refuse "$error"
    trap - EXIT HUP INT TERM PIPE
    umask "$mask"
}

clean() {
    rm -f "$part"
    rmdir "$folder" 2>/dev/null && [ -n "$made" ] && rm -f "$made"
    rmdir "${folder%/*}" "${folder%/*/*}" ${made:+"$cache"} 2>/dev/null
}

refuse() {
    say refused "$(printf '%s' "$1" | tail -n 1)"
    exit 1
}

