# SPDX-License-Identifier: Apache-2.0
# bash completion for pinfold. Commands and options come from pinfold's own help, so that they are
# those of the version that is installed.

_pinfold_commands() {
    "$1" help 2>/dev/null | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_pinfold_options() {
    "$1" help $2 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p'
}

# The position of the first word that belongs to the command that is run, or nothing.
_pinfold_inner() {
    local i
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) echo $((i + 1)) && return ;;
        --backend | --seed | --seed-mode | --exclude | --include | --timeout | --max-output | --env | \
            --workspace | --audit | --net | --ro | --rw | --rootfs | --memory | --processes | \
            --cpu-seconds | --cpus | --open-files | --file-size | --workspace-size | --tmp-size | \
            --region | --profile | --interpreter | --endpoint | --session-timeout | --target | \
            --snapshot | --image | --config)
            # The value follows, after a "=" that bash splits off.
            [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
            ((i++))
            ;;
        --sync) [[ ${COMP_WORDS[i + 1]} == = ]] && ((i += 2)) ;;
        -*) ;;
        *) echo "$i" && return ;;
        esac
    done
}

_pinfold() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} inner=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_pinfold_commands "$1")" -- "$current")
        return
    fi
    if [[ $command == help ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_pinfold_commands "$1")" -- "$current")
        return
    fi
    if ((COMP_CWORD == 2)) && [[ $command == mcp || $command == config ]] && [[ $current != -* ]]; then
        local word=check
        [[ $command == mcp ]] && word=install
        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
        return
    fi
    if [[ $command == mcp && ${COMP_WORDS[2]} == install ]]; then
        command="mcp install"
        if ((COMP_CWORD == 3)) && [[ $current != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "claude-code codex cursor vscode" -- "$current")
            return
        fi
    fi
    [[ $command == run ]] && inner=$(_pinfold_inner)
    if [[ -n $inner ]]; then
        if ((inner == COMP_CWORD)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$current")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        return
    fi
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $previous in
    --seed | --workspace | --ro | --rw | --rootfs) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    --sync) [[ ${COMP_WORDS[COMP_CWORD - 1]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]] &&
        mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    --audit | --config | --session) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    --backend) mapfile -t COMPREPLY < <(compgen -W "isolated local agentcore daytona" -- "$current") ;;
    --seed-mode) mapfile -t COMPREPLY < <(compgen -W "copy overlay" -- "$current") ;;
    --model) mapfile -t COMPREPLY < <(compgen -W "anthropic: bedrock: openai: scripted:" -- "$current") ;;
    --net) mapfile -t COMPREPLY < <(compgen -W "none host allow=" -- "$current") ;;
    --scope) mapfile -t COMPREPLY < <(compgen -W "project user" -- "$current") ;;
    --token-env) mapfile -t COMPREPLY < <(compgen -v -- "$current") ;;
    --env) mapfile -t COMPREPLY < <(compgen -v -S = -- "$current") ;;
    --exclude | --include | --timeout | --max-output | --memory | --processes | --cpu-seconds | \
        --cpus | --open-files | --file-size | --workspace-size | --tmp-size | --region | --profile | \
        --interpreter | --endpoint | --session-timeout | --target | --snapshot | --image | --ttl | \
        --http | --http-host | --http-resume | --token | --name | --url | --base-url | \
        --system | --max-turns | --max-tokens) ;;
    --) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
    *)
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_pinfold_options "$1" "$command")" -- \
                "$current")
        elif [[ $command == run ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$current")
        fi
        ;;
    esac
}

complete -o filenames -F _pinfold pinfold
