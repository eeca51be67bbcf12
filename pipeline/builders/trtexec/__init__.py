"""trtexec anywhere: on this machine, in a container, over ssh."""
