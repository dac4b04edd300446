"""What knows no screen: events, contexts, policies, agent, gateways, sessions."""

__version__ = "0.1.0"
