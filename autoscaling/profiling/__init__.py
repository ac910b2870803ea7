"""From measured engine steps to a profile, and to what it says; pure, with numpy and scipy."""
