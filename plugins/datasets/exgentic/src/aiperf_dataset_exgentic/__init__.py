"""exgentic: traces of agents, a session a row; each span of a session sends its whole chat again."""
