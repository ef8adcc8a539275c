"""Speed and memory of skmixdp, and numbers and figures of the papers made again."""
