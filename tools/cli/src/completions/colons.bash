
# Readline ends words at colons, which URLs have. The parts of such a word are put together, and the candidates get the
# part that readline replaces.
_spandrel() {
    local whole=() index=0 at part previous=
    for at in "${!COMP_WORDS[@]}"; do
        part=${COMP_WORDS[at]}
        if (( at > 0 )) && [[ $part == :* || $previous == *: ]]; then
            whole[${#whole[@]}-1]+=$part
        else
            whole+=("$part")
        fi
        previous=$part
        (( at == COMP_CWORD )) && index=$(( ${#whole[@]} - 1 ))
    done
    local COMP_WORDS=("${whole[@]}") COMP_CWORD=$index
    local word=${whole[index]}
    _clap_complete_spandrel "$1" "$word" "$3"
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        local before=${word%"${word##*:}"}
        for at in "${!COMPREPLY[@]}"; do
            COMPREPLY[at]=${COMPREPLY[at]#"$before"}
        done
    fi
}
complete -o nospace -o bashdefault -F _spandrel spandrel
