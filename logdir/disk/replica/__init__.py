"""Operations on the replicas of one log dir."""
